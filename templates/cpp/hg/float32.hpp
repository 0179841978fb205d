// float32 arithmetic: units whose elements are the bits of float32 numbers.
//
// Purpose     float_key    Converts numbers to integers with the same order.
//             f32_unit     x + c, x * c, x / c, max(x, c) or min(x, c): OP is f32_add, f32_mul, ...
//             f32_join     a + b, a - b or a * b of two streams: OP is f32_add, f32_sub, f32_mul.
//             f32_round    Rounds a number to an integer, which stays a float32.
//             f32_convert  float32(x * 2^SHIFT + offset), * scale.
//             f32_decode   (x * 2^SHIFT + offset) * mantissa * 2^exponent, rounded once.
//             f32_encode   Clamps a number to low..high, rounds it to an integer, and saturates it to the type of y.
//             f32_sign     1 if x >= 0, else 0.
// Parameters  MODE    A rounding of rounding.hpp.
//             SUM     Holds x * 2^SHIFT + offset.
//             M_BITS  Bits of a mantissa.
//             FOLDS   Beats after which the constants of the lanes repeat.
//             ROUNDS  Number of such rounds in a frame.
//             BEATS   Beats of a frame, where there are no constants.
// Tables      Each [FOLDS][N].
// Contract    IEEE 754 float32: rounding to nearest, ties to even, with subnormal and infinite numbers. NaN is
//             0x7FC00000 as a result, key 0, and the code of low. -0 is below +0 in max and min. Function f32_round
//             keeps the sign of zero. Rounding half away and half to zero adds and subtracts 0.5 in float32, as QONNX
//             does. Operations must not be fused or reordered. Many FPGA vendors' floating-point cores flush
//             subnormal numbers to zero. They differ for these numbers alone.
#ifndef HG_FLOAT32_HPP
#define HG_FLOAT32_HPP

#include <cmath>

#include "rounding.hpp"

namespace hg {

const unsigned f32_nan = 0x7FC00000u, f32_infinite = 0x7F800000u;

union f32_word {
    unsigned bits;
    float number;
};

inline float f32_of(const ap_uint<32> &bits) {
    f32_word word;
    word.bits = static_cast<unsigned>(bits.to_int64());
    return word.number;
}

// The bits of a number. All NaN become 0x7FC00000.
inline ap_uint<32> f32_bits(float x) {
    f32_word word;
    word.number = x;
    return ap_uint<32>(x != x ? f32_nan : word.bits);
}

inline bool f32_is_nan(const ap_uint<32> &x) {
    return ap_uint<31>(x) > f32_infinite;
}

// Integers in the order of the numbers. -0 is one below +0.
inline ap_uint<32> f32_key(const ap_uint<32> &x) {
    const unsigned bits = static_cast<unsigned>(x.to_int64());
    return ap_uint<32>((bits >> 31) != 0 ? ~bits : bits | 0x80000000u);
}

struct f32_add {
    static ap_uint<32> of(const ap_uint<32> &x, float c) { return f32_bits(f32_of(x) + c); }
};
struct f32_sub {
    static ap_uint<32> of(const ap_uint<32> &x, float c) { return f32_bits(f32_of(x) - c); }
};
struct f32_mul {
    static ap_uint<32> of(const ap_uint<32> &x, float c) { return f32_bits(f32_of(x) * c); }
};
struct f32_div {
    static ap_uint<32> of(const ap_uint<32> &x, float c) { return f32_bits(f32_of(x) / c); }
};
struct f32_max {
    static ap_uint<32> of(const ap_uint<32> &x, float c) {
        const ap_uint<32> other = f32_bits(c);
        if (f32_is_nan(x) || f32_is_nan(other)) return ap_uint<32>(f32_nan);
        return f32_key(x) > f32_key(other) ? x : other;
    }
};
struct f32_min {
    static ap_uint<32> of(const ap_uint<32> &x, float c) {
        const ap_uint<32> other = f32_bits(c);
        if (f32_is_nan(x) || f32_is_nan(other)) return ap_uint<32>(f32_nan);
        return f32_key(x) < f32_key(other) ? x : other;
    }
};

// Rounds a number to an integer. The sign is handled separately.
template <rounding MODE>
float f32_rounded(float x) {
    f32_word word;
    word.number = x;
    const bool negative = (word.bits >> 31) != 0;
    const float size = negative ? -x : x;
    const float moved = MODE == round_half_away ? size + 0.5f : MODE == round_half_to_zero ? size - 0.5f : size;
    // From 2^23 on all numbers are integers. NaN takes this branch, too.
    if (!(moved < 8388608.0f)) return negative ? -moved : moved;
    const int whole = static_cast<int>(moved);
    const float rest = moved - static_cast<float>(whole);
    bool up = false;
    switch (MODE) {
        case round_half_even: up = rest > 0.5f || (rest == 0.5f && (whole & 1) != 0); break;
        case round_up: up = !negative && rest > 0.0f; break;
        case round_down: up = negative && rest > 0.0f; break;
        case round_away:
        case round_half_to_zero: up = rest > 0.0f; break;
        default: break;
    }
    const float rounded = static_cast<float>(up ? whole + 1 : whole);
    return negative ? -rounded : rounded;
}

// Two's complement or unsigned integers of BITS bits.
template <int BITS, bool SIGNED>
long long f32_saturated(float x) {
    const long long end = 1LL << (BITS - (SIGNED ? 1 : 0));
    const float bound = static_cast<float>(end);
    if (x >= bound) return end - 1;
    if (x < (SIGNED ? -bound : 0.0f)) return SIGNED ? -end : 0;
    return static_cast<long long>(x);
}

// size * 2^exponent, rounded once.
template <int BITS>
ap_uint<32> f32_scaled(bool negative, const ap_uint<BITS> &size, int exponent) {
    if (size == 0) return ap_uint<32>(0);
    int length = 0;
#pragma hls_unroll yes
    for (int bit = 0; bit < BITS; bit++) {
#pragma HLS UNROLL
        if ((size >> bit) != 0) length = bit + 1;
    }
    // Exponent of the last of 24 bits, or of the last bit of subnormal numbers.
    const int unit = length + exponent - 24 > -149 ? length + exponent - 24 : -149;
    const int drop = unit - exponent + 24 < BITS + 25 ? unit - exponent + 24 : BITS + 25;
    typedef ap_uint<BITS + 26> wide;
    const wide all = wide(size) << 24, kept = all >> drop;
    const wide rest = all - wide(kept << drop), half = wide(1) << (drop - 1);
    const bool up = rest > half || (rest == half && (kept & 1) != 0);
    // The carry of the fraction increments the exponent.
    const long long place = unit < 128 ? unit + 149 : 255;
    const long long bits = place * 8388608LL + kept.to_int64() + (up ? 1 : 0);
    const long long bounded = bits < f32_infinite ? bits : f32_infinite;
    return ap_uint<32>(bounded + (negative ? 0x80000000LL : 0LL));
}

template <int BEATS, typename X, typename Y, int N>
void float_key(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            y[n] = f32_is_nan(x[n]) ? Y(0) : Y(f32_key(x[n]));
        }
        m.write(y);
    }
}

template <typename OP, int FOLDS, int ROUNDS, typename X, typename Y, int N>
void f32_unit(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const float (&constant)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=constant complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                y[n] = OP::of(x[n], constant[fold][n]);
            }
            m.write(y);
        }
    }
}

template <typename OP, int BEATS, typename A, typename B, typename Y, int N>
void f32_join(hls::stream<vec<A, N> > &a, hls::stream<vec<B, N> > &b, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<A, N> x = a.read();
        const vec<B, N> y = b.read();
        vec<Y, N> z;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            z[n] = OP::of(x[n], f32_of(y[n]));
        }
        m.write(z);
    }
}

template <rounding MODE, int BEATS, typename X, typename Y, int N>
void f32_round(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            y[n] = f32_bits(f32_rounded<MODE>(f32_of(x[n])));
        }
        m.write(y);
    }
}

template <typename SUM, int SHIFT, int FOLDS, int ROUNDS, typename X, typename Y, int N, typename B>
void f32_convert(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const B (&offset)[FOLDS][N],
                 const float (&scale)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=offset complete dim=2
#pragma HLS ARRAY_PARTITION variable=scale complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM sum = SUM(SUM(x[n]) << SHIFT) + SUM(offset[fold][n]);
                y[n] = f32_bits(static_cast<float>(sum.to_int64()) * scale[fold][n]);
            }
            m.write(y);
        }
    }
}

template <typename SUM, int SHIFT, int M_BITS, int FOLDS, int ROUNDS, typename X, typename Y, int N, typename B,
          typename M, typename E>
void f32_decode(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const B (&offset)[FOLDS][N],
                const M (&mantissa)[FOLDS][N], const E (&exponent)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=offset complete dim=2
#pragma HLS ARRAY_PARTITION variable=mantissa complete dim=2
#pragma HLS ARRAY_PARTITION variable=exponent complete dim=2
    const int bits = traits<SUM>::width;
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const SUM sum = SUM(SUM(x[n]) << SHIFT) + SUM(offset[fold][n]);
                const ap_uint<bits> size = sum < 0 ? ap_uint<bits>(-sum) : ap_uint<bits>(sum);
                const ap_uint<bits + M_BITS> product = size * ap_uint<M_BITS>(mantissa[fold][n]);
                y[n] = f32_scaled<bits + M_BITS>(sum < 0, product, static_cast<int>(exponent[fold][n]));
            }
            m.write(y);
        }
    }
}

template <rounding MODE, int FOLDS, int ROUNDS, typename X, typename Y, int N>
void f32_encode(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const float (&low)[FOLDS][N],
                const float (&high)[FOLDS][N]) {
#pragma HLS ARRAY_PARTITION variable=low complete dim=2
#pragma HLS ARRAY_PARTITION variable=high complete dim=2
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const float number = f32_of(x[n]);
                // This also maps NaN to the lower bound.
                const float inside = !(number >= low[fold][n])  ? low[fold][n]
                                     : number > high[fold][n] ? high[fold][n]
                                                              : number;
                y[n] = Y(f32_saturated<traits<Y>::width, traits<Y>::is_signed>(f32_rounded<MODE>(inside)));
            }
            m.write(y);
        }
    }
}

template <int BEATS, typename X, typename Y, int N>
void f32_sign(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            y[n] = Y(f32_of(x[n]) >= 0.0f ? 1 : 0);
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
