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
// Contract    Elements are unchanged. gather has room for two blocks, if a frame has two. While it emits a block, it
//             reads the next one.
#ifndef HG_MOVES_HPP
#define HG_MOVES_HPP

#include "counters.hpp"

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
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const vec<T, IN> x = s.read();
        vec<T, OUT> y;
#pragma hls_unroll yes
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
    counter<SIZE> at;
    ring<STEP> from_start;  // at - START modulo STEP
    range() : from_start((STEP - START % STEP) % STEP) {}
    bool keeps() const { return (at.at >= START) & (at.at < STOP) & (from_start.at == 0); }
    bool end() const { return at.last; }
    void next(bool moves) {
        const int back = (STEP - (SIZE - 1) % STEP) % STEP;
        from_start.move(ring_step<STEP>(!moves ? 0 : at.last ? back : 1 % STEP));
        if (moves) at.next();
    }
};

template <typename ROWS, typename COLUMNS, typename FOLDS, int BEATS, typename T>
void take(hls::stream<T> &s, hls::stream<T> &m) {
    ROWS row;
    COLUMNS column;
    FOLDS fold;
#pragma hls_pipeline_init_interval 1
    for (int beat = 0; beat < BEATS; beat++) {
#pragma HLS PIPELINE II=1 style=flp
        const T x = s.read();
        if (row.keeps() & column.keeps() & fold.keeps()) m.write(x);
        row.next(fold.end() & column.end());
        column.next(fold.end());
        fold.next(true);
    }
}

template <int HEIGHT, int WIDTH, int WORDS, int TOP, int LEFT, int BOTTOM, int RIGHT, long long VALUE, typename T,
          int N>
void pad(hls::stream<vec<T, N> > &s, hls::stream<vec<T, N> > &m) {
#pragma hls_pipeline_init_interval 1
    for (int row = 0; row < TOP + HEIGHT + BOTTOM; row++) {
        for (int column = 0; column < LEFT + WIDTH + RIGHT; column++) {
            for (int word = 0; word < WORDS; word++) {
#pragma HLS PIPELINE II=1 style=flp
                vec<T, N> x;
                if (row >= TOP && row < TOP + HEIGHT && column >= LEFT && column < LEFT + WIDTH) {
                    x = s.read();
                } else {
#pragma hls_unroll yes
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

// Beats that a block becomes, and the largest extent.
template <typename EXTENTS>
constexpr int beats_of() {
    int beats = 1;
    for (int d = 0; d < EXTENTS::size; d++) beats *= EXTENTS::at(d);
    return beats;
}
template <typename EXTENTS>
constexpr int largest_of() {
    int largest = 1;
    for (int d = 0; d < EXTENTS::size; d++) largest = larger_of(largest, EXTENTS::at(d));
    return largest;
}

template <int BLOCK, int BLOCKS, typename EXTENTS, typename STRIDES, typename T>
void gather(hls::stream<T> &s, hls::stream<T> &m) {
    const int loops = EXTENTS::size, size = BLOCKS > 1 ? 2 * BLOCK : BLOCK, emitted = beats_of<EXTENTS>();
    T store[size];
#pragma HLS AGGREGATE variable=store
    typedef ap_uint<counter_bits(largest_of<EXTENTS>())> count;
    count counts[loops];
    bool ends[loops];  // of each loop, whether it is in its last iteration
#pragma HLS ARRAY_PARTITION variable=counts complete
#pragma HLS ARRAY_PARTITION variable=ends complete
#pragma hls_unroll yes
    for (int d = 0; d < loops; d++) {
#pragma HLS UNROLL
        counts[d] = 0;
        ends[d] = EXTENTS::at(d) == 1;
    }
    countdown<emitted> sends(0);
    countdown<BLOCK> reads(BLOCK);
    countdown<BLOCKS> blocks(BLOCKS - 1);  // that follow the one that is read
    counter<size> free;
    position<-BLOCK, BLOCK> at(0);
    bool second = false;  // the emitted block is in the second half of `store`
#pragma hls_pipeline_init_interval 1
    for (int n = 0; n < BLOCK + (BLOCKS - 1) * larger_of(BLOCK, emitted) + emitted; n++) {
#pragma HLS PIPELINE II=1 style=flp
        const bool sending = sends.any, reading = reads.any, block_end = sends.last & reads.last;
        const int place = (second ? BLOCK : 0) + at.index();
        // ended[d]: all loops from d on run their last iteration. The loop before them advances.
        bool ended[loops + 1];
#pragma HLS ARRAY_PARTITION variable=ended complete
        ended[loops] = sending;
#pragma hls_unroll yes
        for (int d = loops - 1; d >= 0; d--) {
#pragma HLS UNROLL
            ended[d] = ended[d + 1] & ends[d];
        }
        int move = 0;
#pragma hls_unroll yes
        for (int d = 0; d < loops; d++) {
#pragma HLS UNROLL
            const bool next_last = EXTENTS::at(d) == 1 || (counts[d] == larger_of(EXTENTS::at(d) - 2, 0));
            const count next = ends[d] ? count(0) : count(counts[d] + 1);
            const int ahead = STRIDES::at(d), back = (1 - EXTENTS::at(d)) * ahead;
            move += ended[d + 1] ? (ends[d] ? back : ahead) : 0;
            counts[d] = ended[d + 1] ? next : counts[d];
            ends[d] = ended[d + 1] ? next_last : ends[d];
        }
        at.move(move);
        second = second != (ended[0] & (BLOCKS > 1));
        if (block_end) {
            sends = countdown<emitted>(emitted);
            reads = blocks.any ? countdown<BLOCK>(BLOCK) : countdown<BLOCK>(0);
            blocks.next();
        } else {
            sends.next();
            reads.next();
        }
        T word;
        if (reading) word = s.read();
        if (sending) m.write(store[place]);
        if (reading) {
            store[free.index()] = word;
            free.next();
        }
    }
}

}  // namespace hg

#endif
