// softmax: Softmax of rows of codes, as float32.
//
// Purpose     With d = largest code of the row - code, divides numerators[d] by the sum of powers[d] of the row. SUM
//             selects the arithmetic:
//             exact_sum     numerator * (1 / sum), each rounded once, of a sum that is exact and rounded once.
//             sum_in_order  numerator / sum, 0 below 2^-24. The sum is rounded after each element, from first to
//                           last.
//             softmax_products with exact_sum: powers[d] = numerators[d] = high[d >> LOW] * low[the LOW low bits of d],
//             rounded to float32. high is mantissas * 2^(1 - M_BITS - shifts), low is lows * 2^-M_BITS.
// Parameters  SUM       exact_sum or sum_in_order.
//             LAST      Index of the last entry of both lookup tables. Larger distances use it.
//             BITS      Bits of an exact sum.
//             FRACTION  Fraction bits of the sum and of powers.
//             LOW       Low bits of a distance.
//             M_BITS    Bits of a mantissa.
//             BEATS     Beats of a row.
//             ROWS      Rows of a frame.
// Tables      powers[LAST + 1], numerators[LAST + 1], not negative, or mantissas[HIGHS], shifts[HIGHS], lows[1 <<
//             LOW].
// Contract    IEEE 754 float32, to nearest, ties to even. Powers for exact_sum are at most 1, the power of distance 0
//             is 1, and FRACTION bits hold them. A row passes through several processes, one beat per cycle. In
//             sum_in_order, each element waits for the float32 addition of the previous one. Sums are normal numbers.
//             Products are rounded in integers, subnormal ones, too. softmax and softmax_products are inlined: the
//             caller is the dataflow region of their processes, so that frames overlap.
#ifndef HG_SOFTMAX_HPP
#define HG_SOFTMAX_HPP

#include "float32.hpp"
#include "rows.hpp"

namespace hg {

// mantissa * 2^exponent: a number that is not negative, and finite.
struct f32_parts {
    ap_uint<24> mantissa;
    int exponent;
    explicit f32_parts(float x) {
        f32_word word;
        word.number = x;
        const unsigned place = word.bits >> 23, fraction = word.bits & 0x7FFFFFu;
        mantissa = ap_uint<24>(place != 0 ? fraction | 0x800000u : fraction);
        exponent = static_cast<int>(place != 0 ? place : 1u) - 150;
    }
};

template <int BITS, int FRACTION>
struct exact_sum {
    ap_uint<BITS> sum;
    exact_sum() : sum(0) {}
    template <int N>
    void add(bool first, const float (&powers)[N]) {
        ap_uint<BITS> beat = 0;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const f32_parts x(powers[i]);
            // Powers are at most 1: their exponents are negative, and no bit is lost.
            const ap_uint<FRACTION + 24> raised = ap_uint<FRACTION + 24>(x.mantissa) << FRACTION;
            beat += ap_uint<BITS>(ap_uint<FRACTION + 24>(raised >> -x.exponent));
        }
        sum = first ? beat : ap_uint<BITS>(sum + beat);
    }
    float row() const { return 1.0f / f32_of(f32_scaled<BITS>(false, sum, -FRACTION)); }
    static ap_uint<32> of(float numerator, float factor) {
        const f32_parts a(numerator), b(factor);
        return f32_scaled<48>(false, ap_uint<48>(a.mantissa * b.mantissa), a.exponent + b.exponent);
    }
};

struct sum_in_order {
    float sum;
    sum_in_order() : sum(0.0f) {}
    template <int N>
    void add(bool first, const float (&powers)[N]) {
        if (first) sum = 0.0f;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            sum += powers[i];
        }
    }
    float row() const { return sum; }
    static ap_uint<32> of(float numerator, float total) {
        const float quotient = numerator / total;
        return quotient < 5.9604644775390625e-8f ? ap_uint<32>(0) : f32_bits(quotient);
    }
};

template <typename SUM, int LAST, int BEATS, int ROWS, typename D, int N>
void softmax_sums(hls::stream<vec<D, N> > &distances, hls::stream<vec<D, N> > &waiting, hls::stream<float> &sums,
                  const float (&powers)[LAST + 1]) {
    SUM sum;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<D, N> d = distances.read();
        float addends[N];
#pragma HLS ARRAY_PARTITION variable=addends complete
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            addends[i] = powers[static_cast<int>(d[i].to_int64())];
        }
        sum.add(beat == 0, addends);
        waiting.write(d);
        if (beat == BEATS - 1) sums.write(sum.row());
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <typename SUM, int LAST, int BEATS, int ROWS, typename D, typename Y, int N>
void softmax_shares(hls::stream<vec<D, N> > &distances, hls::stream<float> &sums, hls::stream<vec<Y, N> > &m,
                    const float (&numerators)[LAST + 1]) {
    float row = 1.0f;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        if (beat == 0) row = sums.read();
        const vec<D, N> d = distances.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            y[i] = SUM::of(numerators[static_cast<int>(d[i].to_int64())], row);
        }
        m.write(y);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <typename SUM, int LAST, int BEATS, int ROWS, typename X, typename Y, int N>
void softmax(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const float (&powers)[LAST + 1],
             const float (&numerators)[LAST + 1]) {
#pragma HLS INLINE
    hls::stream<vec<X, N>, 2 * BEATS + 2> codes("codes");
    hls::stream<X, 2> largest("largest");
    hls::stream<vec<ap_uint<traits<X>::width>, N>, 2> distances("distances");
    hls::stream<vec<ap_uint<traits<X>::width>, N>, 2 * BEATS + 2> waiting("waiting");
    hls::stream<float, 2> sums("sums");
    row_largest<BEATS, ROWS>(s, codes, largest);
    row_below<LAST, BEATS, ROWS>(codes, largest, distances);
    softmax_sums<SUM, LAST, BEATS, ROWS>(distances, waiting, sums, powers);
    softmax_shares<SUM, LAST, BEATS, ROWS>(waiting, sums, m, numerators);
}

template <typename SUM, int LOW, int M_BITS, int BEATS, int ROWS, typename D, int N, typename Y, typename M,
          typename S, int HIGHS, typename L>
void softmax_powers(hls::stream<vec<D, N> > &distances, hls::stream<vec<Y, N> > &powers, hls::stream<float> &sums,
                    const M (&mantissas)[HIGHS], const S (&shifts)[HIGHS], const L (&lows)[1 << LOW]) {
    const int bits = 2 * M_BITS + 1;
    SUM sum;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<D, N> d = distances.read();
        vec<Y, N> power;
        float addends[N];
#pragma HLS ARRAY_PARTITION variable=addends complete
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const int at = static_cast<int>(d[i].to_int64()), high = at >> LOW, low = at & ((1 << LOW) - 1);
            const ap_uint<bits> product = ap_uint<M_BITS>(mantissas[high]) * ap_uint<M_BITS + 1>(lows[low]);
            power[i] = f32_scaled<bits>(false, product, 1 - 2 * M_BITS - static_cast<int>(shifts[high]));
            addends[i] = f32_of(power[i]);
        }
        sum.add(beat == 0, addends);
        powers.write(power);
        if (beat == BEATS - 1) sums.write(sum.row());
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <typename SUM, int BEATS, int ROWS, typename Y, int N>
void softmax_quotients(hls::stream<vec<Y, N> > &powers, hls::stream<float> &sums, hls::stream<vec<Y, N> > &m) {
    float row = 1.0f;
    int beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        if (beat == 0) row = sums.read();
        const vec<Y, N> power = powers.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            y[i] = SUM::of(f32_of(power[i]), row);
        }
        m.write(y);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

template <typename SUM, int LAST, int LOW, int M_BITS, int BEATS, int ROWS, typename X, typename Y, int N, typename M,
          typename S, int HIGHS, typename L>
void softmax_products(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const M (&mantissas)[HIGHS],
                      const S (&shifts)[HIGHS], const L (&lows)[1 << LOW]) {
#pragma HLS INLINE
    hls::stream<vec<X, N>, 2 * BEATS + 2> codes("codes");
    hls::stream<X, 2> largest("largest");
    hls::stream<vec<ap_uint<traits<X>::width>, N>, 2> distances("distances");
    hls::stream<vec<Y, N>, 2 * BEATS + 2> powers("powers");
    hls::stream<float, 2> sums("sums");
    row_largest<BEATS, ROWS>(s, codes, largest);
    row_below<LAST, BEATS, ROWS>(codes, largest, distances);
    softmax_powers<SUM, LOW, M_BITS, BEATS, ROWS>(distances, powers, sums, mantissas, shifts, lows);
    softmax_quotients<SUM, BEATS, ROWS>(powers, sums, m);
}

}  // namespace hg

#endif
