// pool_tree: largest element or sum of whole windows, channel by channel.
//
// Purpose     For every beat of TAPS taps of N elements, emits N results over the taps, element by element.
// Parameters  REDUCE  maximum or total.
//             TAPS    Taps of a window.
//             BEATS   Beats of a frame.
// Contract    Y holds every result.
#ifndef HG_POOL_TREE_HPP
#define HG_POOL_TREE_HPP

#include "reductions.hpp"
#include "types.hpp"

namespace hg {

template <typename REDUCE, int TAPS, int BEATS, typename X, int IN, typename Y, int N>
void pool_tree(hls::stream<vec<X, IN> > &s, hls::stream<vec<Y, N> > &m) {
    static_assert(IN == TAPS * N, "a beat has all taps");
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, IN> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            Y found[TAPS];
#pragma HLS ARRAY_PARTITION variable=found complete
#pragma hls_unroll yes
            for (int t = 0; t < TAPS; t++) {
#pragma HLS UNROLL
                found[t] = Y(x[t * N + n]);
            }
#pragma hls_unroll yes
            for (int half = 1; half < TAPS; half *= 2) {
#pragma HLS UNROLL
#pragma hls_unroll yes
                for (int t = 0; t + half < TAPS; t += 2 * half) {
#pragma HLS UNROLL
                    found[t] = REDUCE::of(found[t], found[t + half]);
                }
            }
            y[n] = found[0];
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
