// shift: rescaling by a power of two, rounded and clamped.
//
// Purpose     code = clamp(round((x * 2^LEFT + offset) / 2^SHIFT), LOW, HIGH).
// Parameters  SUM          Holds x * 2^LEFT + offset, and the code before it is clamped.
//             MODE         A rounding of rounding.hpp.
//             LEFT, SHIFT  Left shift before the sum, and right shift after it.
//             LOW, HIGH    Bounds of the code.
//             FOLDS        Beats after which the offsets of the lanes repeat.
//             ROUNDS       Number of such rounds in a frame.
// Tables      offset[FOLDS][N].
// Contract    Exact integers. quantize.hpp does the same by ap_fixed, where ap_fixed has the rounding.
#ifndef HG_SHIFT_HPP
#define HG_SHIFT_HPP

#include "rounding.hpp"

namespace hg {

template <typename SUM, rounding MODE, int LEFT, int SHIFT, long long LOW, long long HIGH, int FOLDS, int ROUNDS,
          typename X, typename Y, int N, typename B>
void shift(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const B (&offset)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=offset complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM sum = SUM(SUM(x[n]) << LEFT) + SUM(offset[fold][n]);
                y[n] = Y(clamp<LOW, HIGH>(round_shift<MODE, SHIFT>(sum)));
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
