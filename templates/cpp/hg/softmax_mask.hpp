// softmax_mask: Softmax of rows of codes, some elements of which are masked out.
//
// Purpose     softmax_masked and softmax_products_masked: functions of softmax.hpp, preceded by row_mask. In
//             row_mask, a counting element keeps its code. A masked-out element gets the code GONE, and so a distance
//             of LAST or more. An `even` element gets code 0, like all others of its row that are not masked out.
// Parameters  CODE    Holds codes and GONE.
//             GONE    At most LAST below the least code and below 0.
//             MASKS   Words of the mask, one per beat, used cyclically.
//             others  As in softmax.hpp.
// Tables      masks[MASKS][N]: 0 counts, 1 is even, 2 is masked out. They precede the arrays of softmax.hpp.
// Contract    As in softmax.hpp. A row has counting elements or even ones, not both. If an element is masked out, the
//             power and the numerator of LAST are 0. Both functions are inlined, as in softmax.hpp.
#ifndef HG_SOFTMAX_MASK_HPP
#define HG_SOFTMAX_MASK_HPP

#include "softmax.hpp"

namespace hg {

// Values of a mask word.
enum mask_word { mask_counts, mask_even, mask_gone };

template <typename CODE, int GONE, int BEATS, int ROWS, int MASKS, typename X, int N, typename K>
void row_mask(hls::stream<vec<X, N> > &s, hls::stream<vec<CODE, N> > &m, const K (&masks)[MASKS][N]) {
#pragma HLS ARRAY_PARTITION variable=masks complete dim=2
    int word = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<CODE, N> y;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const int says = static_cast<int>(masks[word][i]);
            y[i] = says == mask_gone ? CODE(GONE) : says == mask_even ? CODE(0) : CODE(x[i]);
        }
        m.write(y);
        word = word == MASKS - 1 ? 0 : word + 1;
    }
}

template <typename SUM, int LAST, typename CODE, int GONE, int BEATS, int ROWS, int MASKS, typename X, typename Y,
          int N, typename K>
void softmax_masked(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const float (&powers)[LAST + 1],
                    const float (&numerators)[LAST + 1], const K (&masks)[MASKS][N]) {
#pragma HLS INLINE
    hls::stream<vec<CODE, N>, 2> masked("masked");
    row_mask<CODE, GONE, BEATS, ROWS>(s, masked, masks);
    softmax<SUM, LAST, BEATS, ROWS>(masked, m, powers, numerators);
}

template <typename SUM, int LAST, int LOW, int M_BITS, typename CODE, int GONE, int BEATS, int ROWS, int MASKS,
          typename X, typename Y, int N, typename M, typename S, int HIGHS, typename L, typename K>
void softmax_products_masked(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const M (&mantissas)[HIGHS],
                             const S (&shifts)[HIGHS], const L (&lows)[1 << LOW], const K (&masks)[MASKS][N]) {
#pragma HLS INLINE
    hls::stream<vec<CODE, N>, 2> masked("masked");
    row_mask<CODE, GONE, BEATS, ROWS>(s, masked, masks);
    softmax_products<SUM, LAST, LOW, M_BITS, BEATS, ROWS>(masked, m, mantissas, shifts, lows);
}

}  // namespace hg

#endif
