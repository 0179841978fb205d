// quantize: rounds and saturates a fixed-point number by assigning it to a type with fewer bits.
//
// Purpose     y = x + offset, where x and y are the numbers that the codes of the streams represent.
// Parameters  SUM     ap_fixed of x + offset. Its last bit is the last bit of the input codes.
//             RESULT  ap_fixed or ap_ufixed of y, with its rounding and overflow. Its last bit is the last bit of the
//                     output codes.
//             FOLDS   Beats after which the offsets of the lanes repeat.
//             ROUNDS  Number of such rounds in a frame.
//             BEATS   Beats of a frame, where there are no offsets.
// Tables      offset[FOLDS][N], in units of the last bit of x.
// Contract    The roundings of QONNX map to: ROUND AP_RND_CONV, FLOOR AP_TRN, DOWN AP_TRN_ZERO, HALF_UP AP_RND_INF,
//             HALF_DOWN AP_RND_ZERO. CEIL maps to AP_TRN with an offset of one step of y minus one step of x. UP has
//             no equivalent in ap_fixed: shift.hpp implements it.
#ifndef HG_QUANTIZE_HPP
#define HG_QUANTIZE_HPP

#include "types.hpp"

namespace hg {

// Width and binary point of a fixed-point type, and conversions from and to the integer with the same bits.
template <typename T>
struct fixed_point;
template <int W, int I, ap_q_mode Q, ap_o_mode O>
struct fixed_point<ap_fixed<W, I, Q, O> > {
    static const int fraction = W - I;
    static const int moved = fraction < 0 ? -fraction : fraction;
    typedef ap_fixed<W + moved, fraction < 0 ? W + moved : W> wide;
};
template <int W, int I, ap_q_mode Q, ap_o_mode O>
struct fixed_point<ap_ufixed<W, I, Q, O> > {
    static const int fraction = W - I;
    static const int moved = fraction < 0 ? -fraction : fraction;
    typedef ap_ufixed<W + moved, fraction < 0 ? W + moved : W> wide;
};

template <typename FIXED, typename INT>
FIXED fixed_of(const INT &bits) {
    typedef fixed_point<FIXED> point;
    const typename point::wide whole = bits;
    return FIXED(point::fraction < 0 ? typename point::wide(whole << point::moved)
                                     : typename point::wide(whole >> point::moved));
}

template <typename INT, typename FIXED>
INT bits_of(const FIXED &value) {
    typedef fixed_point<FIXED> point;
    const typename point::wide all = value;
    const typename point::wide whole = point::fraction < 0 ? typename point::wide(all >> point::moved)
                                                           : typename point::wide(all << point::moved);
    return INT(whole.to_int64());
}

template <typename SUM, typename RESULT, int FOLDS, int ROUNDS, typename X, typename Y, int N, typename B>
void quantize(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const B (&offset)[FOLDS][N]) {
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
                const RESULT result = SUM(fixed_of<SUM>(x[n]) + fixed_of<SUM>(B(offset[fold][n])));
                y[n] = bits_of<Y>(result);
            }
            m.write(y);
        }
    }
}

template <typename SUM, typename RESULT, int BEATS, typename X, typename Y, int N>
void quantize(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            const RESULT result = fixed_of<SUM>(x[n]);
            y[n] = bits_of<Y>(result);
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
