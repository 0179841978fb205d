// AXI4-Stream ports of the core.
//
// Purpose     port_in converts words of the input port to beats of elements. port_out does the reverse.
//             port_in_starts also emits a bit for each frame: TUSER of its first word.
// Parameters  WORD   ap_uint of the port, whole bytes. The first element is in the low bits.
//             BEATS  Beats of a frame.
// Contract    The bit of a frame comes before its beats. TUSER of other words is ignored.
//             port_out sets TLAST in the last beat of a frame; the bits above the elements are 0. port_in ignores
//             TLAST: frames have a fixed number of beats.
#ifndef HG_PORTS_HPP
#define HG_PORTS_HPP

#include <ap_axi_sdata.h>

#include "types.hpp"

namespace hg {

// A word with TUSER: 1 in the first word of a frame that starts a sequence.
template <typename WORD>
using word_with_start = hls::axis<WORD, 1, 0, 0, AXIS_ENABLE_DATA | AXIS_ENABLE_LAST | AXIS_ENABLE_USER, true>;

template <typename WORD, typename T, int N>
vec<T, N> elements_of(const WORD &word) {
#pragma HLS INLINE
    const int width = traits<T>::width;
    vec<T, N> x;
#pragma hls_unroll yes
    for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
        x[n] = T(ap_uint<width>(word >> (n * width)));
    }
    return x;
}

template <typename WORD, int BEATS, typename T, int N>
void port_in(hls::stream<hls::axis_data<WORD, AXIS_ENABLE_DATA | AXIS_ENABLE_LAST> > &s, hls::stream<vec<T, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        m.write(elements_of<WORD, T, N>(s.read().data));
    }
}

template <typename WORD, int BEATS, typename T, int N>
void port_in_starts(hls::stream<word_with_start<WORD> > &s, hls::stream<vec<T, N> > &m,
                    hls::stream<vec<ap_uint<1>, 1> > &starts) {
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const word_with_start<WORD> word = s.read();
        if (beat == 0) {
            vec<ap_uint<1>, 1> start;
            start[0] = word.user;
            starts.write(start);
        }
        m.write(elements_of<WORD, T, N>(word.data));
    }
}

template <typename WORD, int BEATS, typename T, int N>
void port_out(hls::stream<vec<T, N> > &s, hls::stream<hls::axis_data<WORD, AXIS_ENABLE_DATA | AXIS_ENABLE_LAST> > &m) {
    const int width = traits<T>::width;
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<T, N> x = s.read();
        WORD word = 0;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            word = word | WORD(WORD(ap_uint<width>(x[n])) << (n * width));
        }
        hls::axis_data<WORD, AXIS_ENABLE_DATA | AXIS_ENABLE_LAST> y;
        y.data = word;
        y.last = beat == BEATS - 1;
        m.write(y);
    }
}

}  // namespace hg

#endif
