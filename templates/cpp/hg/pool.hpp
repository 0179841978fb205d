// pool: largest element or sum of every window, channel by channel, one word of the window per cycle.
//
// Purpose     For every window, emits GROUPS beats of results over the kernel, element by element.
// Parameters  REDUCE         maximum or total.
//             WINDOW         window<...>.
//             GROUPS, DEPTH  As in windows.hpp. A pixel is GROUPS words.
//             PAD            Code of the elements outside the image.
// Contract    Y holds every result. Words are read in the order of windows.hpp.
#ifndef HG_POOL_HPP
#define HG_POOL_HPP

#include "reductions.hpp"
#include "windows.hpp"

namespace hg {

template <typename REDUCE, typename WINDOW, int GROUPS, int DEPTH, long long PAD, typename X, typename Y, int N>
void pool(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
    vec<X, N> store[DEPTH];
#pragma HLS AGGREGATE variable=store
    Y found[N] = {};
#pragma HLS ARRAY_PARTITION variable=found complete
    typedef window_words<WINDOW, GROUPS, 1, 1, DEPTH> window_order;
    window_order next;
    counter<DEPTH> free;
    for (int n = 0; n < window_order::iterations; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const window_order now = next;
        next.next();
        const bool takes = now.flow.takes();
        vec<X, N> word;
        if (takes) word = s.read();
        vec<Y, N> y;
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const Y x = !now.flow.uses() ? REDUCE::template none<Y>()
                        : now.outside()  ? Y(X(PAD))
                                         : Y(store[now.at()][i]);
            found[i] = now.first() ? x : REDUCE::of(found[i], x);
            y[i] = found[i];
        }
        if (now.last()) m.write(y);
        if (takes) {
            store[free.index()] = word;
            free.next();
        }
    }
}

}  // namespace hg

#endif
