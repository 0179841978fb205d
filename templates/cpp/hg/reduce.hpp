// reduce: largest element or sum of every window, channel by channel, for adjacent windows.
//
// Purpose     Stores no pixels, but one partial result for each window of a row of windows. Windows leave in raster
//             order, each as FOLDS beats of results.
// Parameters  REDUCE         maximum or total.
//             HEIGHT, WIDTH  Pixels of an image.
//             KH, KW         Pixels of a window.
//             OUT_H, OUT_W   Windows. Pixels after them are consumed and dropped.
//             FOLDS          Words of a pixel.
// Contract    Y holds every result. One word per cycle.
#ifndef HG_REDUCE_HPP
#define HG_REDUCE_HPP

#include "reductions.hpp"
#include "types.hpp"

namespace hg {

// Position of a pixel in the windows along one axis of an image.
template <int SIZE, int KERNEL, int COUNT>
struct window_axis {
    int at, tap, window;
    window_axis() : at(0), tap(0), window(0) {}
    bool inside() const { return window < COUNT; }
    bool first() const { return tap == 0; }
    bool last() const { return tap == KERNEL - 1; }
    bool end() const { return at == SIZE - 1; }
    void next() {
        window = end() ? 0 : last() ? window + 1 : window;
        tap = end() || last() ? 0 : tap + 1;
        at = end() ? 0 : at + 1;
    }
};

template <typename REDUCE, int HEIGHT, int WIDTH, int KH, int KW, int OUT_H, int OUT_W, int FOLDS, typename X,
          typename Y, int N>
void reduce(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
    const int columns = KH == 1 ? 1 : OUT_W;
    vec<Y, N> kept[columns * FOLDS];
#pragma HLS AGGREGATE variable=kept
    // A result that was just written is read from `found`, not from `kept`.
#pragma HLS DEPENDENCE variable=kept type=inter direction=RAW distance=2 dependent=true
    Y found[N];
#pragma HLS ARRAY_PARTITION variable=found complete
    window_axis<HEIGHT, KH, OUT_H> y;
    window_axis<WIDTH, KW, OUT_W> x;
    int fold = 0, begin = 0, before = -1;
    for (int word = 0; word < HEIGHT * WIDTH * FOLDS; word++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> code = s.read();
        const bool inside = x.inside() && y.inside(), first = x.first() && y.first();
        const int at = begin + fold;
        if (inside) {
            vec<Y, N> result;
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const Y so_far = at == before ? found[n] : kept[at][n];
                found[n] = first ? Y(code[n]) : REDUCE::of(so_far, Y(code[n]));
                result[n] = found[n];
            }
            kept[at] = result;
            before = at;
            if (x.last() && y.last()) m.write(result);
        }
        fold = fold == FOLDS - 1 ? 0 : fold + 1;
        if (fold == 0) {
            if (x.end()) y.next();
            x.next();
            begin = KH == 1 || x.at == 0 ? 0 : x.first() ? begin + FOLDS : begin;
        }
    }
}

}  // namespace hg

#endif
