// scale_f32: float32 product and rounding, computed in integers.
//
// Purpose     code = clamp(zero_point + round(float32(float32(x + offset) * scale)), LOW, HIGH), ties to even, with
//             scale = mantissa * 2^(left - SHIFT).
// Parameters  SUM        Holds x + offset.
//             CODE       Holds the code before it is clamped.
//             U_BITS     Bits at which |x + offset| * 2^left saturates, which changes no code.
//             M_BITS     Bits of the mantissa.
//             MOST_LEFT  The largest left shift.
//             SHIFT      Right shift.
//             LOW, HIGH  Bounds of the code.
//             FOLDS      Beats after which the functions of the lanes repeat.
//             ROUNDS     Number of such rounds in a frame.
// Tables      Each [FOLDS][N].
// Contract    As IEEE 754 float32 with rounding to nearest, ties to even, without subnormal numbers. The product is
//             rounded once, from q straight to an integer. Prior rounding to float32 would turn products at most d
//             from q + 1/2 into ties. Here d is half a unit in the last place of float32 at q + 1/2.
#ifndef HG_SCALE_F32_HPP
#define HG_SCALE_F32_HPP

#include "rounding.hpp"

namespace hg {

// Rounds an integer to 24 significant bits, to nearest, ties to even, like the conversion to float32.
template <int BITS>
ap_uint<BITS + 1> significant(const ap_uint<BITS> &x) {
    ap_uint<BITS + 1> found = x;
#pragma hls_unroll yes
    for (int length = 24; length < BITS; length++) {
#pragma HLS UNROLL
        const int drop = length - 23;
        if ((x >> length) != 0) {
            const ap_uint<BITS + 1> kept = x >> drop;
            const ap_uint<BITS + 1> rest = ap_uint<BITS + 1>(x) - ap_uint<BITS + 1>(kept << drop);
            const ap_uint<BITS + 1> half = ap_uint<BITS + 1>(1) << (drop - 1);
            const bool up = rest > half || (rest == half && (kept & 1) != 0);
            found = ap_uint<BITS + 1>(kept + (up ? 1 : 0)) << drop;
        }
    }
    return found;
}

template <typename SUM, typename CODE, int U_BITS, int M_BITS, int MOST_LEFT, int SHIFT, long long LOW, long long HIGH,
          int FOLDS, int ROUNDS, typename X, typename Y, int N, typename M, typename L, typename B, typename Z>
void scale_f32(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const M (&mantissa)[FOLDS][N],
               const L (&left)[FOLDS][N], const B (&offset)[FOLDS][N], const Z (&zero_point)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=mantissa complete dim=2
#pragma HLS ARRAY_PARTITION variable=left complete dim=2
#pragma HLS ARRAY_PARTITION variable=offset complete dim=2
#pragma HLS ARRAY_PARTITION variable=zero_point complete dim=2
    const int product_bits = U_BITS + 1 + M_BITS > SHIFT ? U_BITS + 1 + M_BITS : SHIFT + 1;
    const int whole_bits = product_bits - SHIFT;
    typedef ap_uint<traits<SUM>::width + MOST_LEFT> wide;
    typedef ap_uint<product_bits> product_t;
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM sum = SUM(x[n]) + SUM(offset[fold][n]);
                const wide moved = wide(sum < 0 ? SUM(-sum) : sum) << static_cast<int>(left[fold][n]);
                const bool full = (moved >> U_BITS) != 0;
                const ap_uint<U_BITS> size = full ? ap_uint<U_BITS>(~ap_uint<U_BITS>(0)) : ap_uint<U_BITS>(moved);
                const product_t product = significant<U_BITS>(size) * ap_uint<M_BITS>(mantissa[fold][n]);
                const ap_uint<whole_bits> whole = product >> SHIFT;
                const product_t rest = product - product_t(product_t(whole) << SHIFT);
                // d = 2^(SHIFT - 25 + the bits of q), for q of up to 22 bits.
                product_t d = 0;
#pragma hls_unroll yes
                for (int bits = 0; bits <= 22; bits++) {
#pragma HLS UNROLL
                    const int place = SHIFT - 25 + bits;
                    const bool here = (whole >> bits) == 0 && (bits == 0 || (whole >> (bits - 1)) != 0);
                    if (place >= 0 && here) d = product_t(1) << (place > 0 ? place : 0);
                }
                const product_t half = product_t(1) << (SHIFT - 1);
                const bool up = (whole & 1) != 0 ? rest >= half - d : rest > half + d;
                const CODE code = CODE(whole) + CODE(up ? 1 : 0);
                y[n] = Y(clamp<LOW, HIGH>(CODE((sum < 0 ? CODE(-code) : code) + CODE(zero_point[fold][n]))));
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
