// recall, remember, renew: loop-carried state. find, frame_start, first_frame: state between frames.
//
// Purpose     recall emits the state at the start of an iteration. remember stores the state at its end. renew makes
//             the stored state that of the next iteration.
//             find emits the state at the start of a frame: `initial` if the frame starts a sequence, else the state
//             after the frame before. frame_start emits a bit for each frame: 1 if it starts a sequence. The first
//             frame does, whatever its bit in b is. first_frame emits 1 for the first frame only.
// Parameters  BEATS  Beats of a state. For frame_start and first_frame: beats of a frame, which are dropped.
// Contract    An iteration, or a frame, is a dataflow region with two arrays for each state. The array read by it has
//             one reader, and the array written by it has one writer. Elements are unchanged. find does not use
//             `found` for a frame that starts a sequence. `later` is false at reset; the caller keeps it.
#ifndef HG_STATE_HPP
#define HG_STATE_HPP

#include "types.hpp"

namespace hg {

template <int BEATS, typename T>
void recall(const T (&found)[BEATS], hls::stream<T> &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        m.write(found[beat]);
    }
}

template <int BEATS, typename T>
void remember(hls::stream<T> &s, T (&left)[BEATS]) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        left[beat] = s.read();
    }
}

template <int BEATS, typename T>
void renew(const T (&left)[BEATS], T (&found)[BEATS]) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        found[beat] = left[beat];
    }
}

template <int BEATS, typename T, int N, typename C>
void find(const vec<T, N> (&found)[BEATS], hls::stream<vec<ap_uint<1>, 1> > &s, hls::stream<vec<T, N> > &m,
          const C (&initial)[BEATS][N]) {
    bool starts = false;
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        if (beat == 0) starts = s.read()[0] != 0;
        vec<T, N> x;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            x[n] = starts ? T(initial[beat][n]) : found[beat][n];
        }
        m.write(x);
    }
}

template <int BEATS, typename T>
void frame_start(hls::stream<T> &a, hls::stream<vec<ap_uint<1>, 1> > &b, hls::stream<vec<ap_uint<1>, 1> > &m,
                 bool &later) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        a.read();
        if (beat == 0) {
            vec<ap_uint<1>, 1> start = b.read();
            if (!later) start[0] = 1;
            later = true;
            m.write(start);
        }
    }
}

template <int BEATS, typename T>
void first_frame(hls::stream<T> &s, hls::stream<vec<ap_uint<1>, 1> > &m, bool &later) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        s.read();
        if (beat == 0) {
            vec<ap_uint<1>, 1> start;
            start[0] = !later;
            later = true;
            m.write(start);
        }
    }
}

}  // namespace hg

#endif
