// table: codes from a memory.
//
// Purpose     table         All inputs: the index is the low bits of x.
//             table_window  The inputs from centre on. Inputs before and after the window use the first or last code.
//             table_half    The inputs from centre on, as table_window. Below it the index is the distance of the
//                           mirror image, centre - x - 1 + EVEN, and the code is TOTAL - entry.
// Parameters  SIZE         Entries of a function, a power of two.
//             FOLDS        Beats after which the functions of the lanes repeat.
//             ROUNDS       Number of such rounds in a frame.
//             EVEN, TOTAL  Constants of the mirror symmetry.
// Tables      entries[FOLDS][N][SIZE], centre[FOLDS][N].
// Contract    Exact integers. One memory per lane.
#ifndef HG_TABLE_HPP
#define HG_TABLE_HPP

#include "types.hpp"

namespace hg {

template <int SIZE, int FOLDS, int ROUNDS, typename X, typename Y, int N, typename T>
void table(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&entries)[FOLDS][N][SIZE]) {
#pragma HLS ARRAY_PARTITION variable=entries complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const int index = static_cast<int>(x[n].to_int64() & (SIZE - 1));
                y[n] = Y(entries[fold][n][index]);
            }
            m.write(y);
        }
    }
}

template <int SIZE, int FOLDS, int ROUNDS, typename X, typename Y, int N, typename T, typename C>
void table_window(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&entries)[FOLDS][N][SIZE],
                  const C (&centre)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=entries complete dim=2
#pragma HLS ARRAY_PARTITION variable=centre complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const ap_int<traits<X>::width + 2> distance = x[n] - centre[fold][n];
                const int index = distance < 0      ? 0
                                  : distance > SIZE - 1 ? SIZE - 1
                                                        : static_cast<int>(distance.to_int64());
                y[n] = Y(entries[fold][n][index]);
            }
            m.write(y);
        }
    }
}

template <int SIZE, int FOLDS, int ROUNDS, bool EVEN, long long TOTAL, typename X, typename Y, int N, typename T,
          typename C>
void table_half(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&entries)[FOLDS][N][SIZE],
                const C (&centre)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=entries complete dim=2
#pragma HLS ARRAY_PARTITION variable=centre complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                typedef ap_int<traits<X>::width + 3> place;
                const place distance = x[n] - centre[fold][n];
                const bool below = distance < 0;
                const place from = below ? place(-distance - (EVEN ? 0 : 1)) : distance;
                const int index = from > SIZE - 1 ? SIZE - 1 : static_cast<int>(from.to_int64());
                const T entry = entries[fold][n][index];
                y[n] = below ? Y(ap_int<traits<Y>::width + 2>(TOTAL) - entry) : Y(entry);
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
