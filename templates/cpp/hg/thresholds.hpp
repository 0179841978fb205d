// thresholds: monotone functions, by binary search over thresholds.
//
// Purpose     code = BASE + the number of thresholds that x reaches (x >= t). Where falling is 1, thresholds that x
//             does not reach are counted instead.
// Parameters  STEPS   Thresholds of a function.
//             FOLDS   Beats after which the functions of the lanes repeat.
//             ROUNDS  Number of such rounds in a frame.
//             BASE    The least code.
// Tables      thresholds[FOLDS][N][STEPS], ascending, or descending where falling is 1; falling[FOLDS][N]. There is
//             no `falling` if all functions rise.
// Contract    One comparison per bit of the code, in series: they are the stages of the pipeline. Each of them reads a
//             threshold in every cycle, so the memory of a lane has a port per bit (rom_np).
#ifndef HG_THRESHOLDS_HPP
#define HG_THRESHOLDS_HPP

#include "types.hpp"

namespace hg {

template <int STEPS, int FOLDS, int ROUNDS, int BASE, typename X, typename Y, int N, typename T>
void thresholds(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&thresholds)[FOLDS][N][STEPS]) {
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=2
#pragma HLS BIND_STORAGE variable=thresholds type=rom_np
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                int count = 0;
#pragma hls_unroll yes
                for (int step = STEPS + 1; step > 1;) {
#pragma HLS UNROLL
                    const int half = step / 2;
                    if (count + half <= STEPS && x[n] >= thresholds[fold][n][count + half - 1]) count += half;
                    step -= half;
                }
                y[n] = Y(BASE + count);
            }
            m.write(y);
        }
    }
}

template <int STEPS, int FOLDS, int ROUNDS, int BASE, typename X, typename Y, int N, typename T, typename F>
void thresholds(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&thresholds)[FOLDS][N][STEPS],
                const F (&falling)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=thresholds complete dim=2
#pragma HLS BIND_STORAGE variable=thresholds type=rom_np
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
                int count = 0;
#pragma hls_unroll yes
                for (int step = STEPS + 1; step > 1;) {
#pragma HLS UNROLL
                    const int half = step / 2;
                    const bool there = count + half <= STEPS;
                    if (there && (x[n] >= thresholds[fold][n][count + half - 1]) != falls) count += half;
                    step -= half;
                }
                y[n] = Y(BASE + count);
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
