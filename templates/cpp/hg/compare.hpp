// compare: step functions of few steps, a comparator for each.
//
// Purpose     code = BASE + the number of thresholds that x reaches (x >= t), or, where falling is 1, of those that it
//             does not reach.
// Parameters  STEPS    thresholds of a function
//             FOLDS    beats after which the functions of the lanes begin again
//             ROUNDS   how often a frame goes through them
//             BASE     the least code
// Tables      thresholds[FOLDS][N][STEPS] in any order, falling[FOLDS][N]: none if all functions rise
// Contract    all comparisons at once, and their sum.
#ifndef HG_COMPARE_HPP
#define HG_COMPARE_HPP

#include "types.hpp"

namespace hg {

template <int STEPS, int FOLDS, int ROUNDS, int BASE, typename X, typename Y, int N, typename T>
void compare(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&thresholds)[FOLDS][N][STEPS]) {
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=2
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=3
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                int code = BASE;
                for (int step = 0; step < STEPS; step++) {
#pragma HLS UNROLL
                    if (x[n] >= thresholds[fold][n][step]) code++;
                }
                y[n] = Y(code);
            }
            m.write(y);
        }
    }
}

template <int STEPS, int FOLDS, int ROUNDS, int BASE, typename X, typename Y, int N, typename T, typename F>
void compare(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&thresholds)[FOLDS][N][STEPS],
             const F (&falling)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=2
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=3
#pragma HLS ARRAY_PARTITION variable=falling complete dim=2
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const bool falls = falling[fold][n] != 0;
                int code = BASE;
                for (int step = 0; step < STEPS; step++) {
#pragma HLS UNROLL
                    if ((x[n] >= thresholds[fold][n][step]) != falls) code++;
                }
                y[n] = Y(code);
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
