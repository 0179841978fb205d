// conv, depthwise: convolutions tap by tap, one word of the window per cycle.
//
// Purpose     For every window and group, emit REPEAT beats of PE sums over the kernel. conv sums over the FOLDS
//             words of SIMD elements of the group; depthwise sums each element separately.
// Parameters  PRODUCT  multiply, bipolar or agreements.
//             SHAPE    HEIGHT to OUT_W, PAD, GROUPS, FOLDS, REPEAT, DEPTH, as in windows.hpp. A pixel is
//                      GROUPS * FOLDS words. depthwise: FOLDS and REPEAT are 1.
// Tables      conv: weights[GROUPS * REPEAT * KH * KW * FOLDS][PE][SIMD], depthwise: weights[GROUPS * KH * KW][PE],
//             in the order of use.
// Contract    Y holds every sum. Partial sums may wrap; the final sum does not. Words are read in the order of
//             windows.hpp.
#ifndef HG_CONV_HPP
#define HG_CONV_HPP

#include "products.hpp"
#include "windows.hpp"

namespace hg {

// The part of sum p that a word adds: of all its elements, or of one.
template <typename PRODUCT>
struct all_elements {
    template <typename SUM, typename X, int SIMD, typename W>
    static SUM part(int p, const X (&x)[SIMD], const W &weights) {
#pragma HLS INLINE
        SUM sum = 0;
#pragma hls_unroll yes
        for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
            sum += PRODUCT::template of<SUM>(x[i], weights[p][i]);
        }
        return sum;
    }
};
template <typename PRODUCT>
struct one_element {
    template <typename SUM, typename X, int PE, typename W>
    static SUM part(int p, const X (&x)[PE], const W &weights) {
#pragma HLS INLINE
        return PRODUCT::template of<SUM>(x[p], weights[p]);
    }
};

template <typename ELEMENTS, typename SHAPE, typename X, int SIMD, typename Y, int PE, typename W>
void tap_by_tap(hls::stream<vec<X, SIMD> > &s, hls::stream<vec<Y, PE> > &m, const W &weights) {
#pragma HLS INLINE
    vec<X, SIMD> store[SHAPE::DEPTH];
#pragma HLS AGGREGATE variable=store
    typedef typename sum_type<Y>::type SUM;
    SUM sums[PE] = {};
#pragma HLS ARRAY_PARTITION variable=sums complete
    typedef window_words<window<SHAPE>, SHAPE::GROUPS, SHAPE::FOLDS, SHAPE::REPEAT, SHAPE::DEPTH> window_order;
    window_order now;
    counter<SHAPE::DEPTH> free;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < window_order::iterations; n++) {
#pragma HLS PIPELINE II=1 style=flp
        vec<X, SIMD> word;
        const bool takes = now.flow.takes();
        if (takes) word = s.read();
        X x[SIMD];
#pragma HLS ARRAY_PARTITION variable=x complete
#pragma hls_unroll yes
        for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
            x[i] = now.outside() ? X(SHAPE::PAD) : store[now.at()][i];
        }
        vec<Y, PE> y;
#pragma hls_unroll yes
        for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
            const SUM part = ELEMENTS::template part<SUM>(p, x, weights[now.word()]);
            sums[p] = now.first() ? part : SUM(sums[p] + part);
            y[p] = Y(sums[p]);
        }
        if (now.last()) m.write(y);
        if (takes) {
            store[free.index()] = word;
            free.next();
        }
        now.next();
    }
}

template <typename PRODUCT, typename SHAPE, typename X, int SIMD, typename Y, int PE, typename W>
void conv(hls::stream<vec<X, SIMD> > &s, hls::stream<vec<Y, PE> > &m,
          const W (&weights)[SHAPE::GROUPS * SHAPE::REPEAT * window<SHAPE>::taps * SHAPE::FOLDS][PE][SIMD]) {
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=2
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=3
    tap_by_tap<all_elements<PRODUCT>, SHAPE>(s, m, weights);
}

template <typename PRODUCT, typename SHAPE, typename X, int PE, typename Y, typename W>
void depthwise(hls::stream<vec<X, PE> > &s, hls::stream<vec<Y, PE> > &m,
               const W (&weights)[SHAPE::GROUPS * window<SHAPE>::taps][PE]) {
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=2
    static_assert(SHAPE::FOLDS == 1 && SHAPE::REPEAT == 1, "each element has a sum of its own");
    tap_by_tap<one_element<PRODUCT>, SHAPE>(s, m, weights);
}

}  // namespace hg

#endif
