// compare: monotone functions with few thresholds, one comparator per threshold.
//
// Purpose     code = BASE + the number of thresholds that x reaches (x >= t). Where falling is 1, thresholds that x
//             does not reach are counted instead.
// Parameters  STEPS   Thresholds of a function.
//             FOLDS   Beats after which the functions of the lanes repeat.
//             ROUNDS  Number of such rounds in a frame.
//             BASE    The least code.
// Tables      thresholds[FOLDS][N][STEPS] in any order, falling[FOLDS][N]. There is no `falling` if all functions
//             rise.
// Contract    All comparisons run in parallel, then their sum.
#ifndef HG_COMPARE_HPP
#define HG_COMPARE_HPP

#include "types.hpp"

namespace hg {

template <int STEPS, int FOLDS, int ROUNDS, int BASE, typename X, typename Y, int N, typename T>
void compare(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&thresholds)[FOLDS][N][STEPS]) {
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=2
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=3
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                int code = BASE;
#pragma hls_unroll yes
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
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const bool falls = falling[fold][n] != 0;
                int code = BASE;
#pragma hls_unroll yes
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
