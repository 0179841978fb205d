// pool: largest element or sum of every window, channel by channel, one word of the window per cycle.
//
// Purpose     For every window, emits GROUPS beats of results over the kernel, element by element.
// Parameters  REDUCE  maximum or total.
//             SHAPE   HEIGHT to OUT_W, PAD, GROUPS, DEPTH, as in windows.hpp. A pixel is GROUPS words.
// Contract    Y holds every result. Words are read in the order of windows.hpp.
#ifndef HG_POOL_HPP
#define HG_POOL_HPP

#include "reductions.hpp"
#include "windows.hpp"

namespace hg {

template <typename REDUCE, typename SHAPE, typename X, typename Y, int N>
void pool(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
    vec<X, N> store[SHAPE::DEPTH];
#pragma HLS AGGREGATE variable=store
    Y found[N] = {};
#pragma HLS ARRAY_PARTITION variable=found complete
    typedef window_words<window<SHAPE>, SHAPE::GROUPS, 1, 1, SHAPE::DEPTH> window_order;
    window_order now;
    counter<SHAPE::DEPTH> free;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < window_order::iterations; n++) {
#pragma HLS PIPELINE II=1 style=flp
        vec<X, N> word;
        const bool takes = now.flow.takes();
        if (takes) word = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const Y x = now.outside() ? Y(X(SHAPE::PAD)) : Y(store[now.at()][i]);
            found[i] = now.first() ? x : REDUCE::of(found[i], x);
            y[i] = found[i];
        }
        if (now.last()) m.write(y);
        if (takes) {
            store[free.index()] = word;
            free.next();
        }
        now.next();
    }
}

}  // namespace hg

#endif
