// norm: normalization of rows of N integers q = code * 2^SHIFT + OFFSET.
//
// Purpose     norm_moments  One beat per row, {moment, sum}. If CENTERED: N * sum(q^2) - sum(q)^2 and sum(q).
//                           Otherwise: N * sum(q^2) and 0.
//             norm_root     One beat per row, {steps, significand, sum}. With W = moment * factor + addend, k steps
//                           give floor(sqrt(start * 4^k / W)), one bit per step, until this has 25 bits. Then
//                           significand * 2^(1 - steps) is sqrt(start / W), rounded to 24 bits, ties to even.
//             norm_scale    (N * q - sum) * significand * 2^(BIAS - 126 - steps), rounded to float32.
// Parameters  Q               Holds q, signed.
//             S_BITS          Bits of a sum, signed.
//             M_BITS, W_BITS  Bits of a moment, and of W.
//             E_BITS          Bits of steps.
//             A_BITS          Bits of the magnitude of N * q - sum.
//             STEPS           Largest number of steps.
//             AT_ONCE         Steps per cycle.
//             BEATS, ROWS     Beats of a row, rows of a frame.
// Tables      constants[3][PARTS] of norm_root: factor, addend, start, in parts of 32 bits, the lowest part first.
// Contract    Exact; start < addend. Every value fits in its bits. norm_scale rounds in integers, ties to even.
#ifndef HG_NORM_HPP
#define HG_NORM_HPP

#include "counters.hpp"
#include "float32.hpp"

namespace hg {

template <typename Q, int SHIFT, long long OFFSET, typename X>
Q norm_integer(const X &x) {
    return Q(Q(Q(x) << SHIFT) + Q(OFFSET));
}

template <typename Q, int SHIFT, long long OFFSET, bool CENTERED, int S_BITS, int M_BITS, int BEATS, int ROWS,
          typename X, int N, typename Y>
void norm_moments(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, 1> > &m) {
    const int count = BEATS * N, bits = traits<Q>::width + bit_length(count);
    ap_int<bits> sum = 0;
    ap_int<2 * bits> squares = 0;
    counter<BEATS> beat;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const bool first = beat.at == 0, last = beat.last;
        beat.next();
        const vec<X, N> x = s.read();
        ap_int<bits> beat_sum = 0;
        ap_int<2 * bits> beat_squares = 0;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const Q q = norm_integer<Q, SHIFT, OFFSET>(x[i]);
            beat_sum += q;
            beat_squares += q * q;
        }
        sum = first ? beat_sum : ap_int<bits>(sum + beat_sum);
        squares = first ? beat_squares : ap_int<2 * bits>(squares + beat_squares);
        if (last) {
            const ap_int<2 * bits> taken = CENTERED ? ap_int<2 * bits>(sum * sum) : ap_int<2 * bits>(0);
            const ap_uint<M_BITS> moment = ap_uint<M_BITS>(squares * count - taken);
            const ap_uint<S_BITS> low = CENTERED ? ap_uint<S_BITS>(sum) : ap_uint<S_BITS>(0);
            vec<Y, 1> y;
            y[0] = Y(Y(moment) << S_BITS) | Y(low);
            m.write(y);
        }
    }
}

template <int BITS, typename C, int PARTS>
ap_uint<BITS> norm_constant(const C (&parts)[PARTS]) {
    ap_uint<BITS> found = 0;
#pragma hls_unroll yes
    for (int part = PARTS - 1; part >= 0; part--) {
#pragma HLS UNROLL
        found = ap_uint<BITS>(ap_uint<BITS + 32>(found) << 32) | ap_uint<BITS>(ap_uint<32>(parts[part]));
    }
    return found;
}

template <int M_BITS, int S_BITS, int E_BITS, int W_BITS, int STEPS, int AT_ONCE, int ROWS, typename X, typename Y,
          typename C, int PARTS>
void norm_root(hls::stream<vec<X, 1> > &s, hls::stream<vec<Y, 1> > &m, const C (&constants)[3][PARTS]) {
#pragma HLS ARRAY_PARTITION variable=constants complete dim=0
    const int turns = (STEPS - 1) / AT_ONCE + 1;
    typedef ap_uint<W_BITS + 28> wide;
    const ap_uint<W_BITS> factor = norm_constant<W_BITS>(constants[0]), addend = norm_constant<W_BITS>(constants[1]);
    ap_uint<S_BITS> sum = 0;
    ap_uint<25> root = 0;
    ap_uint<E_BITS> steps = 0;
    // t is start * 4^steps: rest = t - root^2 * w, product = root * w.
    wide w = 0, rest = 0, product = 0;
    int turn = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * turns; n++) {
#pragma HLS PIPELINE II=1 style=flp
        if (turn == 0) {
            const X row = s.read()[0];
            sum = ap_uint<S_BITS>(row);
            w = wide(ap_uint<M_BITS>(row >> S_BITS) * factor + addend);
            rest = wide(norm_constant<W_BITS>(constants[2]));
            product = 0;
            root = 0;
            steps = 0;
        }
#pragma hls_unroll yes
        for (int k = 0; k < AT_ONCE; k++) {
#pragma HLS UNROLL
            if ((root >> 24) == 0) {
                // Difference of (2 root + 1)^2 * w and (2 root)^2 * w.
                const wide more = wide(wide(product << 2) + w), left = wide(rest << 2);
                const bool one = left >= more;
                rest = one ? wide(left - more) : left;
                product = one ? wide(wide(product << 1) + w) : wide(product << 1);
                root = ap_uint<25>(ap_uint<25>(root << 1) | ap_uint<25>(one ? 1 : 0));
                steps = ap_uint<E_BITS>(steps + 1);
            }
        }
        if (turn == turns - 1) {
            const bool up = (root & 1) != 0 && (rest != 0 || (root & 2) != 0);
            const ap_uint<25> rounded = ap_uint<25>(ap_uint<25>(root >> 1) + ap_uint<25>(up ? 1 : 0));
            const bool carry = (rounded >> 24) != 0;
            const ap_uint<24> significand = carry ? ap_uint<24>(rounded >> 1) : ap_uint<24>(rounded);
            const ap_uint<E_BITS> last = ap_uint<E_BITS>(steps - ap_uint<E_BITS>(carry ? 1 : 0));
            vec<Y, 1> y;
            y[0] = Y(Y(last) << (24 + S_BITS)) | Y(Y(significand) << S_BITS) | Y(sum);
            m.write(y);
        }
        turn = turn == turns - 1 ? 0 : turn + 1;
    }
}

template <typename Q, int SHIFT, long long OFFSET, int S_BITS, int E_BITS, int A_BITS, int BIAS, int BEATS, int ROWS,
          typename X, int N, typename F, typename Y>
void norm_scale(hls::stream<vec<X, N> > &a, hls::stream<vec<F, 1> > &b, hls::stream<vec<Y, N> > &m) {
    const int count = BEATS * N;
    ap_int<S_BITS> sum = 0;
    ap_uint<24> significand = 0;
    int exponent = 0, beat = 0;
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < ROWS * BEATS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        if (beat == 0) {
            const F row = b.read()[0];
            sum = ap_int<S_BITS>(row);
            significand = ap_uint<24>(row >> S_BITS);
            exponent = BIAS - 126 - static_cast<int>(ap_uint<E_BITS>(row >> (24 + S_BITS)).to_int64());
        }
        const vec<X, N> x = a.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
            const ap_int<A_BITS + 1> element = ap_int<A_BITS + 1>(norm_integer<Q, SHIFT, OFFSET>(x[i]) * count - sum);
            const bool negative = element < 0;
            const ap_uint<A_BITS> size = negative ? ap_uint<A_BITS>(-element) : ap_uint<A_BITS>(element);
            y[i] = f32_scaled<A_BITS + 24>(negative, ap_uint<A_BITS + 24>(size * significand), exponent);
        }
        m.write(y);
        beat = beat == BEATS - 1 ? 0 : beat + 1;
    }
}

}  // namespace hg

#endif
