// conv, depthwise: convolutions tap by tap, one word of the window per cycle.
//
// Purpose     For every window and group, emit REPEAT beats of PE sums over the kernel. conv sums over the FOLDS
//             words of SIMD elements of the group; depthwise sums each element separately.
// Parameters  PRODUCT         multiply, bipolar or agreements.
//             WINDOW          window<...>.
//             GROUPS, FOLDS, REPEAT, DEPTH  As in windows.hpp. A pixel is GROUPS * FOLDS words.
//             PAD             Code of the elements outside the image.
// Tables      conv: weights[GROUPS * REPEAT * KH * KW * FOLDS][PE][SIMD], depthwise: weights[GROUPS * KH * KW][PE],
//             in the order of use.
// Contract    Y holds every sum. Partial sums may wrap; the final sum does not. Words are read in the order of
//             windows.hpp.
#ifndef HG_CONV_HPP
#define HG_CONV_HPP

#include "products.hpp"
#include "windows.hpp"

namespace hg {

template <typename PRODUCT, typename WINDOW, int GROUPS, int FOLDS, int REPEAT, int DEPTH, long long PAD, typename X,
          int SIMD, typename Y, int PE, typename W>
void conv(hls::stream<vec<X, SIMD> > &s, hls::stream<vec<Y, PE> > &m,
          const W (&weights)[GROUPS * REPEAT * WINDOW::taps * FOLDS][PE][SIMD]) {
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=2
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=3
    vec<X, SIMD> store[DEPTH];
#pragma HLS AGGREGATE variable=store
    typedef typename sum_type<Y>::type SUM;
    SUM sums[PE] = {};
#pragma HLS ARRAY_PARTITION variable=sums complete
    typedef window_words<WINDOW, GROUPS, FOLDS, REPEAT, DEPTH> window_order;
    window_order next;
    counter<DEPTH> free;
    for (int n = 0; n < window_order::iterations; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const window_order now = next;
        next.next();
        const bool takes = now.flow.takes();
        vec<X, SIMD> word;
        if (takes) word = s.read();
        SUM parts[PE];
#pragma HLS ARRAY_PARTITION variable=parts complete
        for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
            parts[p] = 0;
        }
        if (now.flow.uses()) {
            X x[SIMD];
#pragma HLS ARRAY_PARTITION variable=x complete
            for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
                x[i] = now.outside() ? X(PAD) : store[now.at()][i];
            }
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
                    parts[p] += PRODUCT::template of<SUM>(x[i], weights[now.word()][p][i]);
                }
            }
        }
        vec<Y, PE> y;
        for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
            sums[p] = now.first() ? parts[p] : SUM(sums[p] + parts[p]);
            y[p] = Y(sums[p]);
        }
        if (now.last()) m.write(y);
        if (takes) {
            store[free.index()] = word;
            free.next();
        }
    }
}

template <typename PRODUCT, typename WINDOW, int GROUPS, int DEPTH, long long PAD, typename X, int PE, typename Y,
          typename W>
void depthwise(hls::stream<vec<X, PE> > &s, hls::stream<vec<Y, PE> > &m,
               const W (&weights)[GROUPS * WINDOW::taps][PE]) {
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=2
    vec<X, PE> store[DEPTH];
#pragma HLS AGGREGATE variable=store
    typedef typename sum_type<Y>::type SUM;
    SUM sums[PE] = {};
#pragma HLS ARRAY_PARTITION variable=sums complete
    typedef window_words<WINDOW, GROUPS, 1, 1, DEPTH> window_order;
    window_order next;
    counter<DEPTH> free;
    for (int n = 0; n < window_order::iterations; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const window_order now = next;
        next.next();
        const bool takes = now.flow.takes();
        vec<X, PE> word;
        if (takes) word = s.read();
        SUM products[PE];
#pragma HLS ARRAY_PARTITION variable=products complete
        for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
            products[p] = 0;
        }
        if (now.flow.uses()) {
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                const X x = now.outside() ? X(PAD) : store[now.at()][p];
                products[p] = PRODUCT::template of<SUM>(x, weights[now.word()][p]);
            }
        }
        vec<Y, PE> y;
        for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
            sums[p] = now.first() ? products[p] : SUM(sums[p] + products[p]);
            y[p] = Y(sums[p]);
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
