// width: the same elements in beats of another number of lanes.
//
// Purpose     a group of elements comes in ceil(GROUP / IN) beats and leaves in beats of OUT elements.
// Parameters  GROUP_IN, GROUP_OUT  elements after which a new beat begins on either side
//             ELEMENTS  elements of a frame
// Contract    lanes behind the last element of a group are not looked at, and are 0 on the other side.
#ifndef HG_WIDTH_HPP
#define HG_WIDTH_HPP

#include "types.hpp"

namespace hg {

template <int GROUP_IN, int GROUP_OUT, int ELEMENTS, typename T, int IN, int OUT>
void width(hls::stream<vec<T, IN> > &s, hls::stream<vec<T, OUT> > &m) {
    vec<T, IN> x;
    vec<T, OUT> y;
    int from = 0, to = 0, taken = 0, sent = 0;
    for (int n = 0; n < ELEMENTS; n++) {
#pragma HLS PIPELINE II=1 style=flp
        if (from == 0) x = s.read();
        if (to == 0) {
            for (int i = 0; i < OUT; i++) {
#pragma HLS UNROLL
                y[i] = T(0);
            }
        }
        y[to++] = x[from++];
        taken++;
        sent++;
        if (from == IN || taken == GROUP_IN) from = 0;
        if (taken == GROUP_IN) taken = 0;
        if (to == OUT || sent == GROUP_OUT) {
            m.write(y);
            to = 0;
        }
        if (sent == GROUP_OUT) sent = 0;
    }
}

}  // namespace hg

#endif
