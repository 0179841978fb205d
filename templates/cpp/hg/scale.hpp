// scale: rescaling by a multiplier and a shift, rounded and clamped.
//
// Purpose     scale           code = clamp(floor((x * multiplier + addend) / 2^SHIFT), LOW, HIGH).
//             scale_nearest   The same rounded to nearest. A tie goes to the odd code where odd is 1, otherwise to
//                             the even one.
//             scale_sides     As scale, with the addend `below` where x < centre.
//             scale_mirrored  floor((|x| * multiplier + addend) / 2^SHIFT) with the sign of x, clamped.
// Parameters  SUM        Holds x * multiplier + addend, and the code before it is clamped.
//             SHIFT      Right shift.
//             LOW, HIGH  Bounds of the code.
//             FOLDS      Beats after which the functions of the lanes repeat.
//             ROUNDS     Number of such rounds in a frame.
// Tables      Each [FOLDS][N].
// Contract    Exact integers. One multiplication per element.
#ifndef HG_SCALE_HPP
#define HG_SCALE_HPP

#include "rounding.hpp"

namespace hg {

template <typename SUM, int SHIFT, long long LOW, long long HIGH, int FOLDS, int ROUNDS, typename X, typename Y, int N,
          typename M, typename A>
void scale(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const M (&multiplier)[FOLDS][N],
           const A (&addend)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=multiplier complete dim=2
#pragma HLS ARRAY_PARTITION variable=addend complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM sum = x[n] * multiplier[fold][n] + addend[fold][n];
                y[n] = Y(clamp<LOW, HIGH>(SUM(sum >> SHIFT)));
            }
            m.write(y);
        }
    }
}

template <typename SUM, int SHIFT, long long LOW, long long HIGH, int FOLDS, int ROUNDS, typename X, typename Y, int N,
          typename M, typename A, typename O>
void scale_nearest(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const M (&multiplier)[FOLDS][N],
                   const A (&addend)[FOLDS][N], const O (&odd)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=multiplier complete dim=2
#pragma HLS ARRAY_PARTITION variable=addend complete dim=2
#pragma HLS ARRAY_PARTITION variable=odd complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM sum = x[n] * multiplier[fold][n] + addend[fold][n];
                const SUM one = odd[fold][n] != 0 ? 1 : 0;
                // Rounding a tie to odd equals rounding to even with all codes increased by one.
                const SUM code = round_shift<round_half_even, SHIFT>(SUM(sum + SUM(one << SHIFT))) - one;
                y[n] = Y(clamp<LOW, HIGH>(code));
            }
            m.write(y);
        }
    }
}

template <typename SUM, int SHIFT, long long LOW, long long HIGH, int FOLDS, int ROUNDS, typename X, typename Y, int N,
          typename M, typename A, typename C, typename B>
void scale_sides(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const M (&multiplier)[FOLDS][N],
                 const A (&addend)[FOLDS][N], const C (&centre)[FOLDS][N], const B (&below)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=multiplier complete dim=2
#pragma HLS ARRAY_PARTITION variable=addend complete dim=2
#pragma HLS ARRAY_PARTITION variable=centre complete dim=2
#pragma HLS ARRAY_PARTITION variable=below complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM side = x[n] < centre[fold][n] ? SUM(below[fold][n]) : SUM(addend[fold][n]);
                const SUM sum = x[n] * multiplier[fold][n] + side;
                y[n] = Y(clamp<LOW, HIGH>(SUM(sum >> SHIFT)));
            }
            m.write(y);
        }
    }
}

template <typename SUM, int SHIFT, long long LOW, long long HIGH, int FOLDS, int ROUNDS, typename X, typename Y, int N,
          typename M, typename A>
void scale_mirrored(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const M (&multiplier)[FOLDS][N],
                    const A (&addend)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=multiplier complete dim=2
#pragma HLS ARRAY_PARTITION variable=addend complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM product = x[n] * multiplier[fold][n];
                const SUM sum = (x[n] < 0 ? SUM(-product) : product) + addend[fold][n];
                const SUM size = sum >> SHIFT;
                y[n] = Y(clamp<LOW, HIGH>(x[n] < 0 ? SUM(-size) : size));
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
