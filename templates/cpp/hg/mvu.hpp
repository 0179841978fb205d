// mvu: a matrix times vectors, PE rows and SIMD columns at once.
//
// Purpose     every vector is read once, in COL_FOLDS beats, and kept for the ROW_FOLDS groups of PE rows.
// Parameters  PRODUCT    multiply<W>, bipolar or agreements
//             PE, SIMD   rows and columns that are worked on at once
//             ROW_FOLDS, COL_FOLDS  groups of them
//             VECTORS    vectors of a frame
// Tables      weights[ROW_FOLDS * COL_FOLDS][PE][SIMD], the groups of columns inside of those of rows
// Contract    Y holds every sum of a whole row. What is added on the way may wrap, the sum does not.
#ifndef HG_MVU_HPP
#define HG_MVU_HPP

#include "products.hpp"

namespace hg {

template <typename PRODUCT, int PE, int SIMD, int ROW_FOLDS, int COL_FOLDS, int VECTORS, typename X, typename Y,
          typename W>
void mvu(hls::stream<vec<X, SIMD> > &s, hls::stream<vec<Y, PE> > &m,
         const W (&weights)[ROW_FOLDS * COL_FOLDS][PE][SIMD]) {
#pragma HLS ARRAY_PARTITION variable=weights complete dim=2
#pragma HLS ARRAY_PARTITION variable=weights complete dim=3
    vec<X, SIMD> kept[COL_FOLDS];
    vec<Y, PE> sums;
    for (int vector = 0; vector < VECTORS; vector++) {
        for (int fold = 0, column = 0; fold < ROW_FOLDS * COL_FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            if (fold < COL_FOLDS) kept[column] = s.read();
            const vec<X, SIMD> x = kept[column];
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                Y sum = column == 0 ? Y(0) : sums[p];
                for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
                    sum += PRODUCT::template of<Y>(x[i], weights[fold][p][i]);
                }
                sums[p] = sum;
            }
            if (++column == COL_FOLDS) {
                column = 0;
                m.write(sums);
            }
        }
    }
}

}  // namespace hg

#endif
