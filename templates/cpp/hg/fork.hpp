// fork: one stream to several consumers.
//
// Purpose     Every beat of s goes to all of `takers`.
// Parameters  BEATS  Beats of a frame.
// Contract    Every consumer receives all beats, unchanged, in their order.
#ifndef HG_FORK_HPP
#define HG_FORK_HPP

#include "types.hpp"

namespace hg {

template <typename T>
void send(const T &) {}

template <typename T, typename... REST>
void send(const T &x, hls::stream<T> &m, REST &...others) {
#pragma HLS INLINE
    m.write(x);
    send(x, others...);
}

template <int BEATS, typename T, typename... TAKERS>
void fork(hls::stream<T> &s, TAKERS &...takers) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        send(s.read(), takers...);
    }
}

}  // namespace hg

#endif
