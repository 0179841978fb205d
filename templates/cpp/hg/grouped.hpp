// grouped: grouped and depthwise convolutions of whole windows, PE sums at once.
//
// Purpose     A beat holds TAPS taps of PE / ROWS groups of COLUMNS elements. Every beat gives ROWS sums per group
//             over its elements of all taps. Element c of group g of tap t is at index (t * PE / ROWS + g) * COLUMNS
//             + c. Beat i uses fold i % FOLDS of the weights.
// Parameters  PRODUCT         multiply, bipolar or agreements.
//             TAPS, ROWS, COLUMNS  See above. Depthwise: one row and one column.
//             FOLDS           Beats of a window.
//             WINDOWS         Windows of a frame, or groups of windows that share a beat.
// Tables      weights[FOLDS][PE][TAPS * COLUMNS].
// Contract    Y holds every sum.
#ifndef HG_GROUPED_HPP
#define HG_GROUPED_HPP

#include "products.hpp"

namespace hg {

template <typename PRODUCT, int TAPS, int ROWS, int COLUMNS, int FOLDS, int WINDOWS, typename X, int IN, typename Y,
          int PE, typename W>
void grouped(hls::stream<vec<X, IN> > &s, hls::stream<vec<Y, PE> > &m,
             const W (&weights)[FOLDS][PE][TAPS * COLUMNS]) {
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=2
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=3
    typedef typename sum_type<Y>::type SUM;
    static_assert(IN * ROWS == TAPS * PE * COLUMNS, "a beat has all taps of its groups");
#pragma hls_pipeline_init_interval 1
    for (int window = 0; window < WINDOWS; window++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, IN> x = s.read();
            vec<Y, PE> y;
#pragma hls_unroll yes
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                SUM sum = 0;
#pragma hls_unroll yes
                for (int t = 0; t < TAPS; t++) {
#pragma HLS UNROLL
#pragma hls_unroll yes
                    for (int c = 0; c < COLUMNS; c++) {
#pragma HLS UNROLL
                        sum += PRODUCT::template of<SUM>(x[(t * (PE / ROWS) + p / ROWS) * COLUMNS + c],
                                                         weights[fold][p][t * COLUMNS + c]);
                    }
                }
                y[p] = Y(sum);
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
