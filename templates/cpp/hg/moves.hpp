// pick, take, pad, gather: select, reorder or repeat elements and beats of a stream, or add a border.
//
// Purpose     pick    Element n of every beat is element PLACES[n] of the input beat.
//             take    Keeps the elements within the ranges of all axes of an image.
//             pad     Adds a border of pixels around an image.
//             gather  Stores blocks of BLOCK beats and emits their beats in the order of nested loops: beat number
//                     sum(counter[d] * stride[d]) of the block.
// Parameters  BEATS           Beats of a frame.
//             PLACES          list<...>.
//             ROWS, COLUMNS, FOLDS  take: range<size, start, stop, step> of rows, columns and beats of a pixel.
//             HEIGHT, WIDTH, WORDS  pad: pixels of the image and beats of a pixel.
//             TOP, LEFT, BOTTOM, RIGHT  pad: rows and columns of the border.
//             VALUE           pad: value of every element of the border.
//             BLOCK, BLOCKS   gather: beats of an input block, blocks of a frame.
//             EXTENTS, STRIDES  gather: list<...> of the loops, the outermost first.
// Contract    Elements are unchanged. gather has room for two blocks, if a frame has two. It reads a beat when the
//             next emitted block needs it, or earlier if the beat is available and there is room for it.
#ifndef HG_MOVES_HPP
#define HG_MOVES_HPP

#include "types.hpp"

namespace hg {

template <int... VALUES>
struct list {
    static const int size = sizeof...(VALUES);
    static constexpr int at(int n) {
        const int values[size] = {VALUES...};
        return values[n];
    }
};

template <typename PLACES, int BEATS, typename T, int IN, int OUT>
void pick(hls::stream<vec<T, IN> > &s, hls::stream<vec<T, OUT> > &m) {
    static_assert(PLACES::size == OUT, "a place for every element");
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<T, IN> x = s.read();
        vec<T, OUT> y;
        for (int n = 0; n < OUT; n++) {
#pragma HLS UNROLL
            y[n] = x[PLACES::at(n)];
        }
        m.write(y);
    }
}

// An axis of SIZE positions, of which START, START + STEP, ... below STOP are kept.
template <int SIZE, int START, int STOP, int STEP>
struct range {
    int at, wanted;
    range() : at(0), wanted(START) {}
    bool keeps() const { return at == wanted; }
    bool end() const { return at == SIZE - 1; }
    void next() {
        if (keeps()) wanted += STEP;
        if (end() || wanted >= STOP) wanted = end() ? START : SIZE;
        at = end() ? 0 : at + 1;
    }
};

template <typename ROWS, typename COLUMNS, typename FOLDS, int BEATS, typename T>
void take(hls::stream<T> &s, hls::stream<T> &m) {
    ROWS row;
    COLUMNS column;
    FOLDS fold;
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const T x = s.read();
        if (row.keeps() && column.keeps() && fold.keeps()) m.write(x);
        if (fold.end() && column.end()) row.next();
        if (fold.end()) column.next();
        fold.next();
    }
}

template <int HEIGHT, int WIDTH, int WORDS, int TOP, int LEFT, int BOTTOM, int RIGHT, long long VALUE, typename T,
          int N>
void pad(hls::stream<vec<T, N> > &s, hls::stream<vec<T, N> > &m) {
    for (int row = 0; row < TOP + HEIGHT + BOTTOM; row++) {
        for (int column = 0; column < LEFT + WIDTH + RIGHT; column++) {
            for (int word = 0; word < WORDS; word++) {
#pragma HLS PIPELINE II=1 style=flp
                vec<T, N> x;
                if (row >= TOP && row < TOP + HEIGHT && column >= LEFT && column < LEFT + WIDTH) {
                    x = s.read();
                } else {
                    for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                        x[n] = T(VALUE);
                    }
                }
                m.write(x);
            }
        }
    }
}

template <int BLOCK, int BLOCKS, typename EXTENTS, typename STRIDES, typename T>
void gather(hls::stream<T> &s, hls::stream<T> &m) {
    const int loops = EXTENTS::size, size = BLOCKS > 1 ? 2 * BLOCK : BLOCK;
    T store[size];
#pragma HLS AGGREGATE variable=store
    int counts[loops];
#pragma HLS ARRAY_PARTITION variable=counts complete
    for (int d = 0; d < loops; d++) {
#pragma HLS UNROLL
        counts[d] = 0;
    }
    // Counters of beats; `at`: of beats of all blocks that were emitted
    int taken = 0, free = 0, sent = 0, half = 0, at = 0;
    while (sent < BLOCK * BLOCKS) {
#pragma HLS PIPELINE II=1 style=flp
        const bool sends = taken >= sent + BLOCK, room = taken < sent + size;
        if (sends) {
            m.write(store[half + at]);
            bool end = true;
            for (int d = loops - 1; d >= 0; d--) {
#pragma HLS UNROLL
                // All inner loops have ended: this one advances, or ends too.
                const bool over = counts[d] == EXTENTS::at(d) - 1;
                if (end) {
                    at += over ? -(EXTENTS::at(d) - 1) * STRIDES::at(d) : STRIDES::at(d);
                    counts[d] = over ? 0 : counts[d] + 1;
                }
                end = end && over;
            }
            if (end) {
                sent += BLOCK;
                half = size - BLOCK - half;
            }
        }
        if (taken < BLOCK * BLOCKS && (!sends || (room && !s.empty()))) {
            store[free] = s.read();
            free = free == size - 1 ? 0 : free + 1;
            taken++;
        }
    }
}

}  // namespace hg

#endif
