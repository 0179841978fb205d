// recall, remember, renew: loop-carried state.
//
// Purpose     recall emits the state at the start of an iteration. remember stores the state at its end. renew makes
//             the stored state that of the next iteration.
// Parameters  BEATS  Beats of a state.
// Contract    An iteration is a dataflow region with two arrays for each state. The array read by it has one reader,
//             and the array written by it has one writer. Elements are unchanged.
#ifndef HG_STATE_HPP
#define HG_STATE_HPP

#include "types.hpp"

namespace hg {

template <int BEATS, typename T>
void recall(const T (&found)[BEATS], hls::stream<T> &m) {
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        m.write(found[beat]);
    }
}

template <int BEATS, typename T>
void remember(hls::stream<T> &s, T (&left)[BEATS]) {
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        left[beat] = s.read();
    }
}

template <int BEATS, typename T>
void renew(const T (&left)[BEATS], T (&found)[BEATS]) {
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        found[beat] = left[beat];
    }
}

}  // namespace hg

#endif
