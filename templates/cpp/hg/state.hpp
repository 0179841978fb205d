// recall, remember, renew: what a step of a loop leaves to the next one.
//
// Purpose     recall: sends the state that a step finds. remember: keeps the one that it leaves. renew: what was left
//             becomes what the next step finds.
// Parameters  BEATS   beats of a state
// Contract    a step is a dataflow region with two arrays for each state: the one that it finds has one reader, the one
//             that it leaves one writer. Elements are unchanged.
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
