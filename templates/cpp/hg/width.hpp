// widen, narrow, gearbox: regroup elements into beats with another number of lanes.
//
// Purpose     widen: beats of OUT elements from several of IN elements; OUT is a multiple of IN. narrow: the reverse.
//             gearbox: any two widths.
// Parameters  GROUP           Elements after which a new beat begins on both sides.
//             GROUPS          Groups of a frame.
//             STEP            gearbox: the elements are stored in steps of STEP elements. It divides IN and OUT.
//             GROUP_IN, GROUP_OUT  The same as GROUP, per side. If they are no whole steps, they are equal.
//             GROUPS_OUT      Output groups of a frame.
// Contract    One beat of the wider side per cycle. A beat is read only when the next output beat needs it. Lanes
//             after the last element of a group are ignored at the input and 0 at the output.
#ifndef HG_WIDTH_HPP
#define HG_WIDTH_HPP

#include "counters.hpp"

namespace hg {

template <int GROUP, int GROUPS, typename T, int IN, int OUT>
void widen(hls::stream<vec<T, IN> > &s, hls::stream<vec<T, OUT> > &m) {
    static_assert(OUT % IN == 0, "whole beats become one");
    const int beats = (GROUP - 1) / IN + 1;
    T kept[OUT / IN][IN];
#pragma HLS ARRAY_PARTITION variable=kept complete dim=0
    counter<OUT / IN> slot;
#pragma hls_pipeline_init_interval 1
    for (int group = 0; group < GROUPS; group++) {
        for (int beat = 0; beat < beats; beat++) {
#pragma HLS PIPELINE II=1 style=flp
            const bool last = beat == beats - 1, full = last | slot.last;
            const int at = slot.index();
            slot.next(last);
            const vec<T, IN> x = s.read();
#pragma hls_unroll yes
            for (int n = 0; n < IN; n++) {
#pragma HLS UNROLL
                kept[at][n] = x[n];
            }
            if (full) {
                vec<T, OUT> y;
#pragma hls_unroll yes
                for (int n = 0; n < OUT; n++) {
#pragma HLS UNROLL
                    y[n] = last && n > (GROUP - 1) % OUT ? T(0) : kept[n / IN][n % IN];
                }
                m.write(y);
            }
        }
    }
}

template <int GROUP, int GROUPS, typename T, int IN, int OUT>
void narrow(hls::stream<vec<T, IN> > &s, hls::stream<vec<T, OUT> > &m) {
    static_assert(IN % OUT == 0, "a beat becomes whole beats");
    const int beats = (GROUP - 1) / OUT + 1;
    T kept[IN / OUT][OUT];
#pragma HLS ARRAY_PARTITION variable=kept complete dim=0
    counter<IN / OUT> slot;
#pragma hls_pipeline_init_interval 1
    for (int group = 0; group < GROUPS; group++) {
        for (int beat = 0; beat < beats; beat++) {
#pragma HLS PIPELINE II=1 style=flp
            const bool last = beat == beats - 1;
            const int at = slot.index();
            slot.next(last);
            if (at == 0) {
                const vec<T, IN> x = s.read();
#pragma hls_unroll yes
                for (int n = 0; n < IN; n++) {
#pragma HLS UNROLL
                    kept[n / OUT][n % OUT] = x[n];
                }
            }
            vec<T, OUT> y;
#pragma hls_unroll yes
            for (int n = 0; n < OUT; n++) {
#pragma HLS UNROLL
                y[n] = last && n > (GROUP - 1) % OUT ? T(0) : kept[at][n];
            }
            m.write(y);
        }
    }
}

// Beats of a group on one side, and steps in all but the last of them, and in the last one.
template <int GROUP, int LANES, int STEP>
struct group_beats {
    static const int count = (GROUP - 1) / LANES + 1, whole = LANES / STEP;
    static const int tail = ((GROUP - 1) % LANES + STEP) / STEP;
};

template <int STEP, int GROUP_IN, int GROUP_OUT, int GROUPS_OUT, typename T, int IN, int OUT>
void gearbox(hls::stream<vec<T, IN> > &s, hls::stream<vec<T, OUT> > &m) {
    static_assert(IN % STEP == 0 && OUT % STEP == 0, "beats are whole steps");
    static_assert(GROUP_IN == GROUP_OUT || (GROUP_IN % STEP == 0 && GROUP_OUT % STEP == 0), "groups are whole steps");
    typedef group_beats<GROUP_IN, IN, STEP> beats_in;
    typedef group_beats<GROUP_OUT, OUT, STEP> beats_out;
    const int beats = GROUPS_OUT * beats_out::count, room = (IN + OUT) / STEP - 1;
    T kept[room][STEP];
#pragma HLS ARRAY_PARTITION variable=kept complete dim=0
    const int in = beats_in::whole, in_tail = beats_in::tail, out = beats_out::whole, out_tail = beats_out::tail;
    typedef ap_int<counter_bits(room) + 1> steps;
    // The stored steps, the oldest first, less those that the next output beat needs. It needs an input beat below 0.
    steps spare = -(beats_out::count == 1 ? out_tail : out);
    bool last = beats_out::count == 1;  // the next output beat is the last one of its group
    counter<beats_in::count> taken;
    counter<beats_out::count> following;  // the output beat after the next one
    following.next();
    countdown<beats> missing(beats);
#pragma hls_pipeline_init_interval 1
    while (missing.any) {
#pragma HLS PIPELINE II=1 style=flp
        // The next value of `spare` after a read, after a write, and after both: one addition each.
        const steps filled = taken.last ? steps(spare + steps(in_tail)) : steps(spare + steps(in));
        const steps left = following.last ? steps(spare - steps(out_tail)) : steps(spare - steps(out));
        const steps from_tail = following.last ? steps(in_tail - out_tail) : steps(in_tail - out);
        const steps from_whole = following.last ? steps(in - out_tail) : steps(in - out);
        const steps left_filled(spare + (taken.last ? from_tail : from_whole));
        const bool reads = spare < 0, writes = !reads | (filled >= 0);
        const int at = static_cast<int>(spare.to_int64()) + (last ? out_tail : out);
        spare = !reads ? left : filled >= 0 ? left_filled : filled;
        if (reads) {
            const vec<T, IN> x = s.read();
#pragma hls_unroll yes
            for (int n = 0; n < IN; n++) {
#pragma HLS UNROLL
                kept[at + n / STEP][n % STEP] = x[n];
            }
            taken.next();
        }
        if (writes) {
            vec<T, OUT> y;
#pragma hls_unroll yes
            for (int n = 0; n < OUT; n++) {
#pragma HLS UNROLL
                y[n] = last && n > (GROUP_OUT - 1) % OUT ? T(0) : kept[n / STEP][n % STEP];
            }
            m.write(y);
#pragma hls_unroll yes
            for (int step = 0; step + out_tail < room; step++) {
#pragma HLS UNROLL
                const bool far = step + out < room && !last;
#pragma hls_unroll yes
                for (int n = 0; n < STEP; n++) {
#pragma HLS UNROLL
                    kept[step][n] = kept[step + (far ? out : out_tail)][n];
                }
            }
            last = following.last;
            following.next();
            missing.next();
        }
    }
}

}  // namespace hg

#endif
