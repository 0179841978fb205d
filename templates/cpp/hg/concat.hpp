// concat, beside: concatenate two tensors.
//
// Purpose     concat: BEATS_A beats of a, then BEATS_B beats of b, TURNS times. beside: for each of PIXELS pixels of
//             a beat, LANES_A elements of a, then LANES_B of b.
// Parameters  BEATS  Beats of a frame. For the others see above.
// Contract    Elements are converted to type Y, which holds them, and are otherwise unchanged.
#ifndef HG_CONCAT_HPP
#define HG_CONCAT_HPP

#include "types.hpp"

namespace hg {

template <int BEATS_A, int BEATS_B, int TURNS, typename A, typename B, typename Y, int N>
void concat(hls::stream<vec<A, N> > &a, hls::stream<vec<B, N> > &b, hls::stream<vec<Y, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int turn = 0; turn < TURNS; turn++) {
        for (int beat = 0; beat < BEATS_A + BEATS_B; beat++) {
#pragma HLS PIPELINE II=1 style=flp
            vec<Y, N> z;
            if (beat < BEATS_A) {
                const vec<A, N> x = a.read();
#pragma hls_unroll yes
                for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                    z[n] = Y(x[n]);
                }
            } else {
                const vec<B, N> y = b.read();
#pragma hls_unroll yes
                for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                    z[n] = Y(y[n]);
                }
            }
            m.write(z);
        }
    }
}

template <int LANES_A, int LANES_B, int PIXELS, int BEATS, typename A, typename B, typename Y, int N>
void beside(hls::stream<vec<A, PIXELS * LANES_A> > &a, hls::stream<vec<B, PIXELS * LANES_B> > &b,
            hls::stream<vec<Y, N> > &m) {
    static_assert(N == PIXELS * (LANES_A + LANES_B), "a beat has whole pixels");
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<A, PIXELS * LANES_A> x = a.read();
        const vec<B, PIXELS * LANES_B> y = b.read();
        vec<Y, N> z;
#pragma hls_unroll yes
        for (int p = 0; p < PIXELS; p++) {
#pragma HLS UNROLL
#pragma hls_unroll yes
            for (int n = 0; n < LANES_A; n++) {
#pragma HLS UNROLL
                z[p * (LANES_A + LANES_B) + n] = Y(x[p * LANES_A + n]);
            }
#pragma hls_unroll yes
            for (int n = 0; n < LANES_B; n++) {
#pragma HLS UNROLL
                z[p * (LANES_A + LANES_B) + LANES_A + n] = Y(y[p * LANES_B + n]);
            }
        }
        m.write(z);
    }
}

}  // namespace hg

#endif
