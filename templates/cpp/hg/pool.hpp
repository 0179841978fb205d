// pool: largest element or sum of every window, channel by channel, one word of the window per cycle.
//
// Purpose     For every window, emits GROUPS beats of results over the kernel, element by element.
// Parameters  REDUCE         maximum or total.
//             WINDOW         window<...>.
//             GROUPS, DEPTH  As in windows.hpp. A pixel is GROUPS words.
//             PAD            Code of the elements outside the image.
// Contract    Y holds every result. A word is read when the next window needs it, or earlier if it is available and
//             there is room for it.
#ifndef HG_POOL_HPP
#define HG_POOL_HPP

#include "reductions.hpp"
#include "windows.hpp"

namespace hg {

template <typename REDUCE, typename WINDOW, int GROUPS, int DEPTH, long long PAD, typename X, typename Y, int N>
void pool(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
    const int words = WINDOW::height * WINDOW::width * GROUPS;
    vec<X, N> store[DEPTH];
#pragma HLS AGGREGATE variable=store
    Y found[N];
#pragma HLS ARRAY_PARTITION variable=found complete
    window_words<WINDOW, GROUPS, 1, 1, DEPTH> next;
    int taken = 0, free = 0;
    while (!next.flow.over || taken < words) {
#pragma HLS PIPELINE II=1 style=flp
        const bool sends = !next.flow.over && taken >= next.flow.need;
        const bool room = taken - next.flow.keep < DEPTH;
        if (sends) {
            vec<Y, N> y;
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const Y x = next.outside() ? Y(X(PAD)) : Y(store[next.at][n]);
                found[n] = next.first() ? x : REDUCE::of(found[n], x);
                y[n] = found[n];
            }
            if (next.last()) m.write(y);
            next.next();
        }
        if (taken < words && (!sends || (room && !s.empty()))) {
            store[free] = s.read();
            free = free == DEPTH - 1 ? 0 : free + 1;
            taken++;
        }
    }
}

}  // namespace hg

#endif
