// lane_shift: rescaling by powers of two, with a shift, rounding and bounds for each lane.
//
// Purpose     code = clamp(round((x * 2^left + offset) / 2^shift), low, high), all of them constants of the lane.
// Parameters  SUM    Holds x * 2^left + offset, and the code before it is clamped.
//             BEATS  Beats of a frame.
// Tables      form[N][3]   left shift, right shift, and the rounding: its number in rounding.hpp.
//             offset[N]    the addend.
//             bound[N][2]  the lowest and the highest code.
// Contract    Exact integers.
#ifndef HG_LANE_SHIFT_HPP
#define HG_LANE_SHIFT_HPP

#include "rounding.hpp"

namespace hg {

template <typename SUM, int BEATS, typename X, typename Y, int N, typename F, typename B, typename C>
void lane_shift(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const F (&form)[N][3], const B (&offset)[N],
                const C (&bound)[N][2]) {
#pragma HLS ARRAY_PARTITION variable=form complete dim=0
#pragma HLS ARRAY_PARTITION variable=offset complete dim=0
#pragma HLS ARRAY_PARTITION variable=bound complete dim=0
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
#pragma hls_unroll yes
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            const int left = int(form[n][0]), shift = int(form[n][1]);
            const rounding mode = rounding(int(form[n][2]));
            const SUM sum = SUM(SUM(x[n]) << left) + SUM(offset[n]);
            const SUM down = sum >> shift;
            const SUM rest = sum - SUM(down << shift);
            const SUM half = shift > 0 ? SUM(SUM(1) << (shift - 1)) : SUM(0);
            const bool tie = shift > 0 && rest == half;
            const bool up = rounds_up(mode, sum < 0, (down & 1) != 0, tie, rest > half, rest != 0);
            const SUM code = down + SUM(up ? 1 : 0);
            const SUM low = SUM(bound[n][0]), high = SUM(bound[n][1]);
            y[n] = Y(code < low ? low : code > high ? high : code);
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
