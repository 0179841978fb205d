// rank: any monotone function as a cascade of small lookup tables over the bits of x, low bits first.
//
// Purpose     A level maps the previous state and the next bits of x to the next state. The last level gives the
//             code.
// Parameters  LEVELS  Lookup tables of a function.
//             LOW     Low bits of x that do not matter.
//             BEATS   Beats of a frame.
// Tables      bits[LEVELS][2]: bits of the state that a level uses, and of x. tables[LEVELS][N][SIZE]: the state is
//             in the low bits of the index. Entries after the last one are 0.
// Contract    Exact integers. Each lane has one function.
#ifndef HG_RANK_HPP
#define HG_RANK_HPP

#include "types.hpp"

namespace hg {

template <int LEVELS, int LOW, int BEATS, typename X, typename Y, int N, typename B, typename T, int SIZE>
void rank(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const B (&bits)[LEVELS][2],
          const T (&tables)[LEVELS][N][SIZE]) {
#pragma HLS ARRAY_PARTITION variable=bits complete dim=0
#pragma HLS ARRAY_PARTITION variable=tables complete dim=1
#pragma HLS ARRAY_PARTITION variable=tables complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            X left = x[n] >> LOW;
            int state = 0;
#pragma hls_unroll yes
            for (int level = 0; level < LEVELS; level++) {
#pragma HLS UNROLL
                const int kept = static_cast<int>(bits[level][0]), taken = static_cast<int>(bits[level][1]);
                const int next = static_cast<int>(left.to_int64() & ((1 << taken) - 1));
                state = static_cast<int>(tables[level][n][(next << kept) | state]);
                left = left >> taken;
            }
            y[n] = Y(state);
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
