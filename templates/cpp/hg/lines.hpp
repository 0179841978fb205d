// lines: a function of lines between knots, symmetric about zero.
//
// Purpose     v = (x * MULTIPLIER + half) >> SHIFT. |v| is the number of a knot, at most the last one, and FRACTION
//             bits of a fraction. h = ((value << LEFT) + fraction * rise) >> RIGHT; the code is h, or MIRROR - h where
//             v < 0.
// Parameters  SCALED    Holds x * MULTIPLIER + 2^SHIFT, and its negative.
//             SUM       Holds (value << LEFT) + 2^FRACTION * rise, its negative, and MIRROR minus that.
//             KNOTS     Number of knots.
//             BEATS     Beats of a frame.
// Tables      knots[N][KNOTS][2]  value and rise of each knot, the same in all lanes.
// Contract    Exact integers. One memory per lane.
#ifndef HG_LINES_HPP
#define HG_LINES_HPP

#include "types.hpp"

namespace hg {

template <typename SCALED, typename SUM, int MULTIPLIER, int SHIFT, int KNOTS, int FRACTION, int LEFT, int RIGHT,
          int MIRROR, int BEATS, typename X, typename Y, int N, typename T>
void lines(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const T (&knots)[N][KNOTS][2]) {
#pragma HLS ARRAY_PARTITION variable=knots complete dim=1
#pragma HLS ARRAY_PARTITION variable=knots complete dim=3
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<X, N> x = s.read();
        vec<Y, N> y;
        for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
            const SCALED half = SHIFT > 0 ? SCALED(SCALED(1) << (SHIFT > 0 ? SHIFT - 1 : 0)) : SCALED(0);
            const SCALED v = SCALED(SCALED(x[n]) * SCALED(MULTIPLIER) + half) >> SHIFT;
            const SCALED size = v < 0 ? SCALED(-v) : v;
            const SCALED place = size >> FRACTION;
            const int knot = place > KNOTS - 1 ? KNOTS - 1 : static_cast<int>(place.to_int64());
            const SUM fraction = SUM(static_cast<int>(size.to_int64() & ((1 << FRACTION) - 1)));
            const SUM sum = SUM(SUM(knots[n][knot][0]) << LEFT) + SUM(fraction * SUM(knots[n][knot][1]));
            const SUM height = sum >> RIGHT;
            y[n] = Y(v < 0 ? SUM(SUM(MIRROR) - height) : height);
        }
        m.write(y);
    }
}

}  // namespace hg

#endif
