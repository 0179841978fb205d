// argmax: position of the largest element of a vector.
//
// Purpose     Classification output.
// Parameters  BEATS    Beats of a vector.
//             VECTORS  Vectors of a frame.
// Contract    The first of several equal largest elements wins.
#ifndef HG_ARGMAX_HPP
#define HG_ARGMAX_HPP

#include "types.hpp"

namespace hg {

template <int BEATS, int VECTORS, typename X, int N, typename Y>
void argmax(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, 1> > &m) {
    X best = 0;
    int index = 0;
#pragma hls_pipeline_init_interval 1
    for (int vector = 0; vector < VECTORS; vector++) {
        for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            X top = x[0];
            int at = 0;
#pragma hls_unroll yes
            for (int n = 1; n < N; n++) {
#pragma HLS UNROLL
                if (x[n] > top) {
                    top = x[n];
                    at = n;
                }
            }
            if (beat == 0 || top > best) {
                best = top;
                index = beat * N + at;
            }
            if (beat == BEATS - 1) {
                vec<Y, 1> y;
                y[0] = Y(index);
                m.write(y);
            }
        }
    }
}

}  // namespace hg

#endif
