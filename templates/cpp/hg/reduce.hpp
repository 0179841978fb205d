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

#include "counters.hpp"
#include "reductions.hpp"

namespace hg {

template <typename REDUCE, int HEIGHT, int WIDTH, int KH, int KW, int OUT_H, int OUT_W, int FOLDS, typename X,
          typename Y, int N>
void reduce(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
    // An image of one column is one of one row: adjacent words of a window never meet in `kept`.
    const bool turned = WIDTH == 1;
    const int width = turned ? HEIGHT : WIDTH, height = turned ? 1 : HEIGHT, columns = turned ? OUT_H : OUT_W;
    const int wide = turned ? KH : KW, tall = turned ? 1 : KH, rows = turned ? 1 : OUT_H;
    // Results of a row of a window, and of its rows so far.
    Y in_row[FOLDS][N] = {};
#pragma HLS ARRAY_PARTITION variable=in_row complete dim=0
    vec<Y, N> kept[tall == 1 ? 1 : columns * FOLDS];
#pragma HLS AGGREGATE variable=kept
#pragma HLS DEPENDENCE variable=kept type=inter direction=RAW distance=2 dependent=true
    counter<FOLDS> fold;
    counter<width> column;
    counter<height> row;
    counter<wide> tap_x;
    counter<tall> tap_y;
    counter<columns * FOLDS> place;
#pragma hls_pipeline_init_interval 1
    for (int word = 0; word < HEIGHT * WIDTH * FOLDS; word++) {
#pragma HLS PIPELINE II=1 style=flp
        const bool inside = (column.at < columns * wide) & (row.at < rows * tall), row_end = inside & tap_x.last;
        const bool first_x = tap_x.at == 0, first_y = tap_y.at == 0, last_y = tap_y.last;
        const int at = tall == 1 ? 0 : place.index();
        const bool pixel_end = fold.last, line_end = fold.last & column.last;
        if (row_end) place.next();
        if (line_end) tap_y.next(row.last);
        if (line_end) row.next();
        if (pixel_end) tap_x.next(column.last);
        if (pixel_end) column.next();
        fold.next();
        const vec<X, N> code = s.read();
        const vec<Y, N> above = kept[at];
        vec<Y, N> result;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            const Y so_far = first_x ? Y(code[n]) : REDUCE::of(in_row[0][n], Y(code[n]));
#pragma hls_unroll yes
            for (int f = 0; f < FOLDS - 1; f++) {
#pragma HLS UNROLL
                in_row[f][n] = in_row[f + 1][n];
            }
            in_row[FOLDS - 1][n] = so_far;
            result[n] = first_y ? so_far : REDUCE::of(above[n], so_far);
        }
        if (row_end & !last_y) kept[at] = result;
        if (row_end & last_y) m.write(result);
    }
}

}  // namespace hg

#endif
