// Rows of integers: functions of each element and a statistic of its whole row.
//
// Purpose     rows_max                m = largest element of the row - s.
//             rows_share              m = numbers[s] / sum of weights[s] over the row, rounded down.
//             rows_fixed_share        m = share of exponentials[s], with 31 fraction bits, in the row, in steps of
//                                     2^-bits, at most 2^bits - 1. It is the contract of hg_rows_fixed_share.
//             rows_norm               m = (t / root, truncated, + bias) >> SHIFT, rounded down, with t = (s - mean) *
//                                     weight. mean is sum of s / N, truncated, or 0. root is floor(sqrt(v)), where v
//                                     is the sum of (s - mean)^2 / N, rounded down, + 1.
//             row_largest, row_below  Parts of rows_max and of Softmax. row_largest emits the largest element of each
//                                     row, and buffers the row's beats until then. row_below emits the distance of
//                                     each element to the largest, at most LAST.
// Parameters  LAST      Limit of the distances; larger than all distances in rows_max.
//             BEATS     Beats of a row. N is BEATS times the lanes.
//             ROWS      Rows of a frame.
//             SUM       Holds the sum of weights, of exponentials with 19 fraction bits, or of the elements.
//             SQUARES   Holds the sum of squares, unsigned.
//             ROOT      Holds the root, unsigned.
//             NUMBER    Holds t and the quotient with its bias.
//             CENTERED  true: the mean is subtracted.
//             SHIFT     Bits dropped at the end.
//             WRAPS     true: a result keeps its low bits; false: it saturates.
// Tables      weights[WORDS], numbers[WORDS] of rows_share; exponentials[WORDS] of rows_fixed_share;
//             weights[BEATS][N], biases[BEATS][N] of rows_norm.
// Contract    Exact integers. A row passes through several processes, one beat per cycle. The last process begins
//             with a row when the row is complete. The next rows arrive meanwhile. No sum of weights is 0. rows_max,
//             rows_share, rows_fixed_share and rows_norm are inlined: the caller is the dataflow region of their
//             processes, so that frames overlap.
#ifndef HG_ROWS_HPP
#define HG_ROWS_HPP

#include "types.hpp"

namespace hg {

template <int BEATS, int ROWS, typename X, int N>
void row_largest(hls::stream<vec<X, N> > &s, hls::stream<vec<X, N> > &waiting, hls::stream<X> &largest) {
    X best = 0;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        X top = x[0];
#pragma hls_unroll yes
        for (int i = 1; i < N; i++) {
#pragma HLS UNROLL
            if (x[i] > top) top = x[i];
        }
        if (beat == 0 || top > best) best = top;
        waiting.write(x);
        if (beat == BEATS - 1) largest.write(best);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <int LAST, int BEATS, int ROWS, typename X, int N, typename Y>
void row_below(hls::stream<vec<X, N> > &waiting, hls::stream<X> &largest, hls::stream<vec<Y, N> > &m) {
    X top = 0;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        if (beat == 0) top = largest.read();
        const vec<X, N> x = waiting.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const int below = static_cast<int>((top - x[i]).to_int64());
            y[i] = Y(below < LAST ? below : LAST);
        }
        m.write(y);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <int BEATS, int ROWS, typename X, int N, typename Y>
void rows_max(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma HLS INLINE
    hls::stream<vec<X, N>, 2 * BEATS + 2> waiting("waiting");
    hls::stream<X, 2> largest("largest");
    row_largest<BEATS, ROWS>(s, waiting, largest);
    row_below<(1 << 30), BEATS, ROWS>(waiting, largest, m);
}

template <int BEATS, int ROWS, typename X, int N, typename SUM, typename W, int WORDS>
void row_weights(hls::stream<vec<X, N> > &s, hls::stream<vec<X, N> > &waiting, hls::stream<SUM> &sums,
                 const W (&weights)[WORDS]) {
    SUM sum = 0;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        if (beat == 0) sum = 0;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            sum += SUM(weights[static_cast<int>(x[i].to_int64())]);
        }
        waiting.write(x);
        if (beat == BEATS - 1) sums.write(sum);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <int BEATS, int ROWS, typename X, int N, typename SUM, typename Y, typename C, int WORDS>
void row_shares(hls::stream<vec<X, N> > &waiting, hls::stream<SUM> &sums, hls::stream<vec<Y, N> > &m,
                const C (&numbers)[WORDS]) {
    SUM sum = 1;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        if (beat == 0) sum = sums.read();
        const vec<X, N> x = waiting.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            y[i] = Y(ap_uint<64>(numbers[static_cast<int>(x[i].to_int64())]) / sum);
        }
        m.write(y);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <typename SUM, int BEATS, int ROWS, typename X, int N, typename Y, typename W, typename C, int WORDS>
void rows_share(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const W (&weights)[WORDS],
                const C (&numbers)[WORDS]) {
#pragma HLS INLINE
    hls::stream<vec<X, N>, 2 * BEATS + 2> waiting("waiting");
    hls::stream<SUM, 2> sums("sums");
    row_weights<BEATS, ROWS>(s, waiting, sums, weights);
    row_shares<BEATS, ROWS>(waiting, sums, m, numbers);
}

// The number of the highest bit of a sum, and the reciprocal of its significand with 31 fraction bits.
struct row_reciprocal {
    ap_uint<5> place;
    ap_uint<31> r;
};

// a * b / 2^31 to the nearest.
inline ap_int<32> row_product(const ap_int<32> &a, const ap_int<32> &b) {
    const ap_int<64> raised = ap_int<64>(a) * ap_int<64>(b) + (ap_int<64>(1) << 30);
    return ap_int<32>(raised >> 31);
}

template <int BEATS, int ROWS, typename X, int N, typename SUM, typename C, int WORDS>
void row_exponentials(hls::stream<vec<X, N> > &s, hls::stream<vec<X, N> > &waiting, hls::stream<SUM> &sums,
                      const C (&exponentials)[WORDS]) {
    SUM sum = 0;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        if (beat == 0) sum = 0;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const ap_uint<32> raised = ap_uint<32>(exponentials[static_cast<int>(x[i].to_int64())]) + 2048;
            sum += SUM(raised >> 12);
        }
        waiting.write(x);
        if (beat == BEATS - 1) sums.write(sum);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <int ROWS, typename SUM>
void row_newton(hls::stream<SUM> &sums, hls::stream<row_reciprocal> &reciprocals) {
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const SUM sum = sums.read();
        row_reciprocal found;
        found.place = 0;
#pragma hls_unroll yes
        for (int bit = 0; bit < traits<SUM>::width; bit++) {
#pragma HLS UNROLL
            if (sum[bit]) found.place = bit;
        }
        const ap_int<32> h = ap_int<32>(sum) << (30 - static_cast<int>(found.place.to_int64()));
        ap_int<32> x = 1515870810 + row_product(h, -1010580540);
        for (int step = 0; step < 3; step++) {
            const ap_int<32> e = 536870912 - row_product(h, x);
            x += ap_int<32>(row_product(x, e) << 2);
        }
        found.r = x[30] ? ap_uint<31>(2147483647) : ap_uint<31>(ap_uint<31>(x) << 1);
        reciprocals.write(found);
    }
}

template <int BEATS, int ROWS, typename X, int N, typename Y, typename C, int WORDS>
void row_fixed_shares(hls::stream<vec<X, N> > &waiting, hls::stream<row_reciprocal> &reciprocals,
                      hls::stream<vec<Y, N> > &m, const C (&exponentials)[WORDS]) {
    const int bits = traits<Y>::width;
    const ap_uint<64> most = (ap_uint<64>(1) << bits) - 1;
#pragma hls_pipeline_init_interval 1
    for (int row = 0; row < ROWS; row++) {
        row_reciprocal now;
        for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
            if (beat == 0) now = reciprocals.read();
            const int shift = 43 - bits + static_cast<int>(now.place.to_int64());
            const vec<X, N> x = waiting.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
                const ap_uint<64> product =
                    ap_uint<64>(now.r) * ap_uint<64>(exponentials[static_cast<int>(x[i].to_int64())]);
                // Both roundings at once: to 31 bits less, then to the rest less.
                const ap_uint<64> raised = product + (ap_uint<64>(1) << 30) + (ap_uint<64>(1) << (shift - 1));
                const ap_uint<64> share = raised >> shift;
                y[i] = Y(share < most ? share : most);
            }
            m.write(y);
        }
    }
}

template <typename SUM, int BEATS, int ROWS, typename X, int N, typename Y, typename C, int WORDS>
void rows_fixed_share(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const C (&exponentials)[WORDS]) {
#pragma HLS INLINE
    hls::stream<vec<X, N>, 2 * BEATS + 2> waiting("waiting");
    hls::stream<SUM, 2> sums("sums");
    hls::stream<row_reciprocal, 2> reciprocals("reciprocals");
    row_exponentials<BEATS, ROWS>(s, waiting, sums, exponentials);
    row_newton<ROWS>(sums, reciprocals);
    row_fixed_shares<BEATS, ROWS>(waiting, reciprocals, m, exponentials);
}

// Sums of a row.
template <typename SUM, typename SQUARES>
struct row_sums {
    SUM sum;
    SQUARES squares;
};

// Statistics shared by all elements of a row. MEAN is the type of the elements, which holds every mean.
template <typename MEAN, typename ROOT>
struct row_moments {
    MEAN mean;
    ROOT root;
};

template <int BEATS, int ROWS, typename X, int N, typename SUM, typename SQUARES>
void row_add(hls::stream<vec<X, N> > &s, hls::stream<vec<X, N> > &waiting,
             hls::stream<row_sums<SUM, SQUARES> > &sums) {
    row_sums<SUM, SQUARES> row;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        if (beat == 0) {
            row.sum = 0;
            row.squares = 0;
        }
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            row.sum += SUM(x[i]);
            row.squares += SQUARES(x[i] * x[i]);
        }
        waiting.write(x);
        if (beat == BEATS - 1) sums.write(row);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <int COUNT, bool CENTERED, int ROWS, typename X, typename SUM, typename SQUARES, typename ROOT>
void row_root(hls::stream<row_sums<SUM, SQUARES> > &sums, hls::stream<row_moments<X, ROOT> > &moments) {
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const row_sums<SUM, SQUARES> row = sums.read();
        row_moments<X, ROOT> found;
        found.mean = CENTERED ? X(row.sum / COUNT) : X(0);
        // The sum of (x - mean)^2.
        const SQUARES apart = SQUARES(row.squares - found.mean * (row.sum * 2 - found.mean * COUNT));
        const SQUARES v = SQUARES(apart / COUNT + 1);
        found.root = 0;
#pragma hls_unroll yes
        for (int bit = traits<ROOT>::width - 1; bit >= 0; bit--) {
#pragma HLS UNROLL
            const ROOT larger = ROOT(found.root | ROOT(ROOT(1) << bit));
            if (larger * larger <= v) found.root = larger;
        }
        moments.write(found);
    }
}

template <typename NUMBER, int SHIFT, bool WRAPS, int BEATS, int ROWS, typename X, int N, typename ROOT, typename Y,
          typename W, typename B>
void row_normalize(hls::stream<vec<X, N> > &waiting, hls::stream<row_moments<X, ROOT> > &moments,
                   hls::stream<vec<Y, N> > &m, const W (&weights)[BEATS][N], const B (&biases)[BEATS][N]) {
#pragma HLS ARRAY_PARTITION variable=weights complete dim=2
#pragma HLS ARRAY_PARTITION variable=biases complete dim=2
    const int bits = traits<Y>::width;
    const NUMBER high = (NUMBER(1) << (bits - 1)) - 1, low = -high - 1;
#pragma hls_pipeline_init_interval 1
    for (int row = 0; row < ROWS; row++) {
        row_moments<X, ROOT> now;
        for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
            if (beat == 0) now = moments.read();
            const vec<X, N> x = waiting.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
                const NUMBER t = NUMBER((x[i] - now.mean) * NUMBER(weights[beat][i]));
                const NUMBER sum = NUMBER(NUMBER(t / now.root) + NUMBER(biases[beat][i])) >> SHIFT;
                y[i] = WRAPS ? Y(sum) : sum < low ? Y(low) : sum > high ? Y(high) : Y(sum);
            }
            m.write(y);
        }
    }
}

template <typename SUM, typename SQUARES, typename ROOT, typename NUMBER, bool CENTERED, int SHIFT, bool WRAPS,
          int BEATS, int ROWS, typename X, int N, typename Y, typename W, typename B>
void rows_norm(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const W (&weights)[BEATS][N],
               const B (&biases)[BEATS][N]) {
#pragma HLS INLINE
    hls::stream<vec<X, N>, 2 * BEATS + 2> waiting("waiting");
    hls::stream<row_sums<SUM, SQUARES>, 2> sums("sums");
    hls::stream<row_moments<X, ROOT>, 2> moments("moments");
    row_add<BEATS, ROWS>(s, waiting, sums);
    row_root<BEATS * N, CENTERED, ROWS>(sums, moments);
    row_normalize<NUMBER, SHIFT, WRAPS, BEATS, ROWS>(waiting, moments, m, weights, biases);
}

}  // namespace hg

#endif
