// pair_add, pair_scale: quantized sum or product of two operands packed in one element.
//
// Purpose     pair_add            ((a + ZP0) * S0 + (b + ZP1) * S1) * SO / 2^SHIFT, rounded half to even, - ZPO.
//             pair_scale          clamp(round((a * FIRST + b * SECOND + OFFSET) / 2^SHIFT), LOW, HIGH).
//             pair_scale_product  clamp(round(((a - ZA) * (b - ZB) * FIRST + OFFSET) / 2^SHIFT), LOW, HIGH).
// Parameters  A      ap_int<8> or ap_uint<8>, the type of the operands.
//             SUM    Holds the value before the shift.
//             MODE   A rounding of rounding.hpp.
//             BEATS  Beats of a frame.
// Contract    Exact integers. Operand a is the low byte of an element, b the high byte. In pair_add, products keep
//             their low 32 bits. Its sums saturate to 32 bits, the result of the shift to 16, and the code to 8. A
//             negative SHIFT shifts left.
#ifndef HG_PAIR_HPP
#define HG_PAIR_HPP

#include "rounding.hpp"

namespace hg {

template <int BITS, typename T>
ap_int<BITS> saturate(const T &x) {
    return ap_int<BITS>(clamp<-(1LL << (BITS - 1)), (1LL << (BITS - 1)) - 1>(x));
}

template <int SHIFT>
ap_int<32> shifted(const ap_int<32> &x) {
    const int right = SHIFT < 0 ? 0 : SHIFT > 32 ? 32 : SHIFT, to_left = SHIFT > 0 ? 0 : SHIFT < -32 ? 32 : -SHIFT;
    return ap_int<32>(ap_int<64>(round_shift<round_half_even, right>(ap_int<34>(x))) << to_left);
}

template <int ZP0, int ZP1, int ZPO, int S0, int S1, int SO, int SHIFT, int BEATS, typename X, typename Y, int N>
void pair_add(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            const ap_int<8> a = ap_int<8>(x[n]), b = ap_int<8>(X(x[n] >> 8));
            const ap_int<32> first = (a + ap_int<17>(ZP0)) * ap_uint<16>(S0);
            const ap_int<32> second = (b + ap_int<17>(ZP1)) * ap_uint<16>(S1);
            const ap_int<32> total = saturate<32>(ap_int<34>(first + second)) * ap_uint<8>(SO);
            const ap_int<16> narrow = saturate<16>(shifted<SHIFT>(total));
            y[n] = Y(saturate<8>(saturate<16>(ap_int<18>(narrow - ap_int<17>(ZPO)))));
        }
        m.write(y);
    }
}

template <typename A, typename SUM, long long FIRST, long long SECOND, long long OFFSET, rounding MODE, int SHIFT,
          long long LOW, long long HIGH, int BEATS, typename X, typename Y, int N>
void pair_scale(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            const A a = A(x[n]), b = A(X(x[n] >> 8));
            const SUM sum = a * SUM(FIRST) + b * SUM(SECOND) + SUM(OFFSET);
            y[n] = Y(clamp<LOW, HIGH>(round_shift<MODE, SHIFT>(sum)));
        }
        m.write(y);
    }
}

template <typename A, typename SUM, int ZA, int ZB, long long FIRST, long long OFFSET, rounding MODE, int SHIFT,
          long long LOW, long long HIGH, int BEATS, typename X, typename Y, int N>
void pair_scale_product(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            const A a = A(x[n]), b = A(X(x[n] >> 8));
            const SUM sum = (a - ap_int<10>(ZA)) * (b - ap_int<10>(ZB)) * SUM(FIRST) + SUM(OFFSET);
            y[n] = Y(clamp<LOW, HIGH>(round_shift<MODE, SHIFT>(sum)));
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
