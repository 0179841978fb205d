// dynamic_mvu: products of a matrix and vectors that both arrive as streams, PE sums and SIMD products at once.
//
// Purpose     m[p] = sum over FOLDS beats and SIMD lanes i of (a[i] * FA + OA) * (b[p, i] * FB + OB).
// Parameters  FACTOR      Type of FA, OA, FB, OB.
//             PE, SIMD    Sums, and products per sum, that are processed at once.
//             FOLDS       Beats of a sum.
//             ROWS_FIRST  true: b[p, i] is at index p * SIMD + i; false: at i * PE + p.
//             SUMS        Output beats of a frame.
// Contract    Y holds every sum. Partial sums may wrap; the final sum does not.
#ifndef HG_DYNAMIC_MVU_HPP
#define HG_DYNAMIC_MVU_HPP

#include "types.hpp"

namespace hg {

template <typename FACTOR, int PE, int SIMD, int FOLDS, bool ROWS_FIRST, long long FA, long long OA, long long FB,
          long long OB, int SUMS, typename A, typename B, int IN, typename Y>
void dynamic_mvu(hls::stream<vec<A, SIMD> > &a, hls::stream<vec<B, IN> > &b, hls::stream<vec<Y, PE> > &m) {
    static_assert(IN == PE * SIMD, "a beat has the factors of all products");
    Y sums[PE];
#pragma HLS ARRAY_PARTITION variable=sums complete
    int fold = 0;
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < SUMS * FOLDS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<A, SIMD> x = a.read();
        const vec<B, IN> w = b.read();
#pragma hls_unroll yes
        for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
            Y sum = 0;
#pragma hls_unroll yes
            for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
                sum += Y((x[i] * FACTOR(FA) + FACTOR(OA)) *
                         (w[ROWS_FIRST ? p * SIMD + i : i * PE + p] * FACTOR(FB) + FACTOR(OB)));
            }
            sums[p] = fold == 0 ? sum : Y(sums[p] + sum);
        }
        fold = fold == FOLDS - 1 ? 0 : fold + 1;
        if (fold == 0) {
            vec<Y, PE> y;
#pragma hls_unroll yes
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                y[p] = sums[p];
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
