// join_sum, join_product, join_pair: two streams to one, element by element.
//
// Purpose     join_sum: a * FA + b * FB. join_product: (a - ZA) * (b - ZB). join_pair: a in the low bits, b in the
//             high bits.
// Parameters  FACTOR          Type of the factors or zero points.
//             FA, FB, ZA, ZB  See above.
//             BEATS           Beats of a frame.
// Contract    Y holds every result.
#ifndef HG_JOIN_HPP
#define HG_JOIN_HPP

#include "types.hpp"

namespace hg {

template <typename FACTOR, long long FA, long long FB, int BEATS, typename A, typename B, typename Y, int N>
void join_sum(hls::stream<vec<A, N> > &a, hls::stream<vec<B, N> > &b, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<A, N> x = a.read();
        const vec<B, N> y = b.read();
        vec<Y, N> z;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            z[n] = Y(x[n] * FACTOR(FA) + y[n] * FACTOR(FB));
        }
        m.write(z);
    }
}

template <typename FACTOR, long long ZA, long long ZB, int BEATS, typename A, typename B, typename Y, int N>
void join_product(hls::stream<vec<A, N> > &a, hls::stream<vec<B, N> > &b, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<A, N> x = a.read();
        const vec<B, N> y = b.read();
        vec<Y, N> z;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            z[n] = Y((x[n] - FACTOR(ZA)) * (y[n] - FACTOR(ZB)));
        }
        m.write(z);
    }
}

template <int BEATS, typename A, typename B, typename Y, int N>
void join_pair(hls::stream<vec<A, N> > &a, hls::stream<vec<B, N> > &b, hls::stream<vec<Y, N> > &m) {
    const int width = traits<A>::width;
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<A, N> x = a.read();
        const vec<B, N> y = b.read();
        vec<Y, N> z;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            z[n] = (Y(y[n]) << width) | Y(ap_uint<width>(x[n]));
        }
        m.write(z);
    }
}

}  // namespace hg

#endif
