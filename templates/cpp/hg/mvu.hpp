// mvu: a matrix times vectors, PE rows and SIMD columns at once. mvu_beside: times several vectors at once.
//
// Purpose     mvu reads every vector once, in COL_FOLDS beats, and keeps it for the ROW_FOLDS groups of PE rows. In
//             mvu_beside, a beat has WINDOWS whole vectors in TAPS pieces: piece t of vector n is at index t *
//             WINDOWS + n. The sums of each vector follow those of the previous one.
// Parameters  PRODUCT         multiply, bipolar or agreements.
//             PE, SIMD        Rows and columns that are processed at once.
//             ROW_FOLDS, COL_FOLDS  Groups of rows and of columns.
//             VECTORS         Vectors of a frame.
//             BEATS           Beats of a frame.
// Tables      mvu: weights[ROW_FOLDS * COL_FOLDS][PE][SIMD], with the column groups as the inner index. In hardware,
//             this is one memory with a word for each fold. mvu_beside: weights[1][PE][SIMD].
// Contract    Y holds every sum of a whole row. Partial sums may wrap; the final sum does not. No state is set in front
//             of the loops, so that they can be rewound.
#ifndef HG_MVU_HPP
#define HG_MVU_HPP

#include "products.hpp"

namespace hg {

template <typename PRODUCT, int PE, int SIMD, int ROW_FOLDS, int COL_FOLDS, int VECTORS, typename X, typename Y,
          typename W>
void mvu(hls::stream<vec<X, SIMD> > &s, hls::stream<vec<Y, PE> > &m,
         const W (&weights)[ROW_FOLDS * COL_FOLDS][PE][SIMD]) {
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=2
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=3
    vec<X, SIMD> kept[COL_FOLDS];
#pragma HLS AGGREGATE variable=kept
    typedef typename sum_type<Y>::type SUM;
    SUM sums[PE];
#pragma HLS ARRAY_PARTITION variable=sums complete
#pragma hls_pipeline_init_interval 1
    for (int vector = 0; vector < VECTORS; vector++) {
        for (int group = 0; group < ROW_FOLDS; group++) {
            for (int column = 0; column < COL_FOLDS; column++) {
#pragma HLS PIPELINE II=1 style=flp
                vec<X, SIMD> x;
                if (group == 0) {
                    x = s.read();
                    if (ROW_FOLDS > 1) kept[column] = x;
                } else {
                    x = kept[column];
                }
#pragma hls_unroll yes
                for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                    SUM sum = 0;
#pragma hls_unroll yes
                    for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
                        sum += PRODUCT::template of<SUM>(x[i], weights[group * COL_FOLDS + column][p][i]);
                    }
                    sums[p] = column == 0 ? sum : SUM(sums[p] + sum);
                }
                if (column == COL_FOLDS - 1) {
                    vec<Y, PE> y;
#pragma hls_unroll yes
                    for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                        y[p] = Y(sums[p]);
                    }
                    m.write(y);
                }
            }
        }
    }
}

template <typename PRODUCT, int WINDOWS, int TAPS, int PE, int SIMD, int BEATS, typename X, int IN, typename Y, int OUT,
          typename W>
void mvu_beside(hls::stream<vec<X, IN> > &s, hls::stream<vec<Y, OUT> > &m, const W (&weights)[1][PE][SIMD]) {
#pragma HLS ARRAY_PARTITION variable=weights complete dim=0
    static_assert(IN == WINDOWS * SIMD && OUT == WINDOWS * PE, "a beat has all vectors");
    typedef typename sum_type<Y>::type SUM;
    const int columns = SIMD / TAPS;
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, IN> x = s.read();
        vec<Y, OUT> y;
#pragma hls_unroll yes
        for (int n = 0; n < WINDOWS; n++) {
#pragma HLS UNROLL
#pragma hls_unroll yes
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                SUM sum = 0;
#pragma hls_unroll yes
                for (int t = 0; t < TAPS; t++) {
#pragma HLS UNROLL
#pragma hls_unroll yes
                    for (int c = 0; c < columns; c++) {
#pragma HLS UNROLL
                        sum += PRODUCT::template of<SUM>(x[(t * WINDOWS + n) * columns + c],
                                                         weights[0][p][t * columns + c]);
                    }
                }
                y[n * PE + p] = Y(sum);
            }
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
