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
// Contract    Y holds every sum. Partial sums may wrap; the final sum does not. A word is read when the next window
//             needs it, or earlier if it is available and there is room for it.
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
    const int words = WINDOW::height * WINDOW::width * GROUPS * FOLDS;
    vec<X, SIMD> store[DEPTH];
#pragma HLS AGGREGATE variable=store
    typedef typename sum_type<Y>::type SUM;
    SUM sums[PE] = {};
#pragma HLS ARRAY_PARTITION variable=sums complete
    window_words<WINDOW, GROUPS, FOLDS, REPEAT, DEPTH> next;
    int taken = 0, free = 0;
    while (!next.flow.over || taken < words) {
#pragma HLS PIPELINE II=1 style=flp
        const bool sends = !next.flow.over && taken >= next.flow.need;
        const bool room = taken - next.flow.keep < DEPTH;
        if (sends) {
            X x[SIMD];
#pragma HLS ARRAY_PARTITION variable=x complete
            for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
                x[i] = next.outside() ? X(PAD) : store[next.at][i];
            }
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                SUM sum = next.first() ? SUM(0) : sums[p];
                for (int i = 0; i < SIMD; i++) {
#pragma HLS UNROLL
                    sum += PRODUCT::template of<SUM>(x[i], weights[next.word][p][i]);
                }
                sums[p] = sum;
            }
            if (next.last()) {
                vec<Y, PE> y;
                for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                    y[p] = Y(sums[p]);
                }
                m.write(y);
            }
            next.next();
        }
        if (taken < words && (!sends || (room && !s.empty()))) {
            store[free] = s.read();
            free = free == DEPTH - 1 ? 0 : free + 1;
            taken++;
        }
    }
}

template <typename PRODUCT, typename WINDOW, int GROUPS, int DEPTH, long long PAD, typename X, int PE, typename Y,
          typename W>
void depthwise(hls::stream<vec<X, PE> > &s, hls::stream<vec<Y, PE> > &m,
               const W (&weights)[GROUPS * WINDOW::taps][PE]) {
#pragma HLS ARRAY_RESHAPE variable=weights complete dim=2
    const int words = WINDOW::height * WINDOW::width * GROUPS;
    vec<X, PE> store[DEPTH];
#pragma HLS AGGREGATE variable=store
    typedef typename sum_type<Y>::type SUM;
    SUM sums[PE] = {};
#pragma HLS ARRAY_PARTITION variable=sums complete
    window_words<WINDOW, GROUPS, 1, 1, DEPTH> next;
    int taken = 0, free = 0;
    while (!next.flow.over || taken < words) {
#pragma HLS PIPELINE II=1 style=flp
        const bool sends = !next.flow.over && taken >= next.flow.need;
        const bool room = taken - next.flow.keep < DEPTH;
        if (sends) {
            vec<Y, PE> y;
            for (int p = 0; p < PE; p++) {
#pragma HLS UNROLL
                const X x = next.outside() ? X(PAD) : store[next.at][p];
                const SUM product = PRODUCT::template of<SUM>(x, weights[next.word][p]);
                sums[p] = next.first() ? product : SUM(sums[p] + product);
                y[p] = Y(sums[p]);
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
