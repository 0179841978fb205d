// sliding: line buffer that emits whole windows of an image.
//
// Purpose     For every window, emits FOLDS beats of all its taps. Tap t = kh * KW + kw has the elements of word f of
//             its pixel, or PAD outside the image. With WINDOWS > 1, a beat holds WINDOWS adjacent windows of a row.
//             Tap t of window n is then at index t * WINDOWS + n. Elements after the last window of a row are
//             undefined.
// Parameters  SHAPE    HEIGHT to OUT_W, PAD, as in windows.hpp, in pixels, and:
//             FOLDS    Words of a pixel.
//             ROWS     Stored rows; 1 if the kernel has one row.
//             COLUMNS  Words of a row. If the kernel has one row: stored words, a multiple of `span`.
//             PIXELS   Pixels of a row in an input word. Each row begins a new word.
//             WINDOWS  Windows of a row in a beat. WINDOWS * SW is a multiple of PIXELS.
// Contract    ROWS * span memories, each read and written once per cycle. Row r is in slot r % ROWS, and word x of it
//             in bank x % span. Words are read in the order of windows.hpp.
#ifndef HG_SLIDING_HPP
#define HG_SLIDING_HPP

#include "windows.hpp"

namespace hg {

// A word of a row, in one of BANKS memories of SIZE words each: their number modulo BANKS, and its quotient.
template <int BANKS, int SIZE>
struct bank_place {
    ring<BANKS> bank;
    ring<SIZE> at;
    explicit bank_place(int word) : bank(wrapped(word, BANKS)), at(row_of(word)) {}
    static constexpr int row_of(int word) { return wrapped((word - wrapped(word, BANKS)) / BANKS, SIZE); }
    // Moves by ROW_STEP at the end of a row, else by STEP, or not at all.
    template <int STEP, int ROW_STEP>
    void move(bool moves, bool row_end) {
        const bool carry = bank.move(ring_step<BANKS>(!moves    ? 0
                                                      : row_end ? wrapped(ROW_STEP, BANKS)
                                                                : wrapped(STEP, BANKS)));
        at.move(!moves    ? ring_step<SIZE>(0)
                : row_end ? (carry ? ring_step<SIZE>(row_of(ROW_STEP) + 1) : ring_step<SIZE>(row_of(ROW_STEP)))
                : carry   ? ring_step<SIZE>(row_of(STEP) + 1)
                          : ring_step<SIZE>(row_of(STEP)));
    }
};

// The image in words of PIXELS pixels. `step`: of a window, from one beat to the next. `left`: left of the image.
// `span`: of a beat. Tap 0 of window 0 is pixel `skew` of those words. `beats`: the windows, in words.
template <typename SHAPE>
struct sliding_words : window<SHAPE> {
    static const int across = (SHAPE::WIDTH - 1) / SHAPE::PIXELS + 1, step = SHAPE::WINDOWS * SHAPE::SW / SHAPE::PIXELS;
    static const int left = (SHAPE::PL + SHAPE::PIXELS - 1) / SHAPE::PIXELS, skew = left * SHAPE::PIXELS - SHAPE::PL;
    static const int span = (skew + (SHAPE::WINDOWS - 1) * SHAPE::SW + window<SHAPE>::wide - 1) / SHAPE::PIXELS + 1;
    struct beats {
        static const int HEIGHT = SHAPE::HEIGHT, WIDTH = across, KH = window<SHAPE>::tall, KW = span, SH = SHAPE::SH;
        static const int SW = step, DH = 1, DW = 1, PT = SHAPE::PT, PL = left, OUT_H = SHAPE::OUT_H;
        static const int OUT_W = (SHAPE::OUT_W - 1) / SHAPE::WINDOWS + 1;
    };
};

// `first`, `slot`: place of the first word of a window, and slot of its first row. `x`, `y`: position of its first tap
// in words. free_...: place of the next word of the image.
template <typename SHAPE>
class sliding_order {
    typedef sliding_words<SHAPE> words_of;
    typedef window<typename words_of::beats> beats;
    typedef window_needs<beats, SHAPE::FOLDS> needs;
    static const int back = -(beats::OUT_W - 1) * beats::SW, down = beats::tall == 1 ? beats::SH * beats::WIDTH : 0;
    static const int top = -beats::PT * needs::row, left = -beats::PL * SHAPE::FOLDS;
    counter<beats::OUT_W> column;
    counter<beats::WIDTH> free_column;

public:
    static const int row = needs::row, words = needs::words, bank_words = (SHAPE::COLUMNS - 1) / words_of::span + 1;
    typedef window_flow<beats, SHAPE::FOLDS, SHAPE::FOLDS, SHAPE::ROWS * SHAPE::COLUMNS * SHAPE::FOLDS> flow_of_words;
    flow_of_words flow;
    static const int iterations = flow_of_words::iterations;
    counter<SHAPE::FOLDS> fold, free_fold;
    bank_place<words_of::span, bank_words> first;
    ring<SHAPE::ROWS> slot;
    position<left, left + (beats::SW - back) * SHAPE::FOLDS> x;
    position<top, top + beats::OUT_H * beats::SH * row> y;
    counter<words_of::span> free_bank;
    counter<bank_words> free_at;
    counter<SHAPE::ROWS> free_slot;

    sliding_order()
        : first((beats::tall == 1 ? -beats::PT * beats::WIDTH : 0) - beats::PL),
          slot(wrapped(-beats::PT, SHAPE::ROWS)), x(left), y(top) {}
    void next() {
        const bool takes = flow.takes(), uses = flow.uses(), moves = uses & fold.last, row_end = moves & column.last;
        first.template move<beats::SW, down + back>(moves, row_end);
        slot.move(ring_step<SHAPE::ROWS>(row_end ? wrapped(beats::SH, SHAPE::ROWS) : 0));
        x.move(!moves ? 0 : row_end ? back * SHAPE::FOLDS : beats::SW * SHAPE::FOLDS);
        y.move(row_end ? beats::SH * row : 0);
        if (moves) column.next();
        if (uses) fold.next();
        const bool word_end = takes & free_fold.last, free_row_end = word_end & free_column.last & (beats::tall > 1);
        if (free_row_end) free_slot.next();
        if ((word_end & free_bank.last) | free_row_end) free_at.next(free_row_end);
        if (word_end) {
            free_bank.next(free_row_end);
            free_column.next();
        }
        if (takes) free_fold.next();
        flow.next();
    }
};

template <typename SHAPE, typename X, int IN, int OUT>
void sliding(hls::stream<vec<X, IN> > &s, hls::stream<vec<X, OUT> > &m) {
    typedef sliding_words<SHAPE> words;
    typedef sliding_order<SHAPE> order;
    const int lanes = IN / SHAPE::PIXELS, span = words::span, ROWS = SHAPE::ROWS, FOLDS = SHAPE::FOLDS;
    static_assert(OUT == words::taps * SHAPE::WINDOWS * lanes, "a beat is all taps of all its windows");
    vec<X, IN> store[ROWS][span][order::bank_words * FOLDS];
#pragma HLS AGGREGATE variable=store
#pragma HLS ARRAY_PARTITION variable=store complete dim=1
#pragma HLS ARRAY_PARTITION variable=store complete dim=2

    order now;
#pragma hls_pipeline_init_interval 1
    for (int iteration = 0; iteration < order::iterations; iteration++) {
#pragma HLS PIPELINE II=1 style=flp
        vec<X, IN> word;
        const bool takes = now.flow.takes();
        if (takes) word = s.read();
        if (now.flow.uses()) {
            vec<X, IN> read[ROWS][span];
#pragma HLS ARRAY_PARTITION variable=read complete dim=0
#pragma hls_unroll yes
            for (int r = 0; r < ROWS; r++) {
#pragma HLS UNROLL
#pragma hls_unroll yes
                for (int b = 0; b < span; b++) {
#pragma HLS UNROLL
                    const int at = b < now.first.bank.index() ? now.first.at.above() : now.first.at.index();
                    read[r][b] = store[r][b][at * FOLDS + now.fold.index()];
                }
            }
            vec<X, OUT> out;
#pragma hls_unroll yes
            for (int h = 0; h < SHAPE::KH; h++) {
#pragma HLS UNROLL
                const int below = h * SHAPE::DH * order::row, turn = now.slot.index() + h * SHAPE::DH;
                const int r = turn >= ROWS ? turn - ROWS : turn;
                const bool inside = now.y.within(-below, order::words - below);
#pragma hls_unroll yes
                for (int w = 0; w < SHAPE::KW; w++) {
#pragma HLS UNROLL
#pragma hls_unroll yes
                    for (int n = 0; n < SHAPE::WINDOWS; n++) {
#pragma HLS UNROLL
                        const int pixel = words::skew + n * SHAPE::SW + w * SHAPE::DW;
                        const int right = pixel / SHAPE::PIXELS;
                        const int turned = now.first.bank.index() + right, b = turned >= span ? turned - span : turned;
                        const bool outside = !inside | !now.x.within(-right * FOLDS, order::row - right * FOLDS);
#pragma hls_unroll yes
                        for (int i = 0; i < lanes; i++) {
#pragma HLS UNROLL
                            out[((h * SHAPE::KW + w) * SHAPE::WINDOWS + n) * lanes + i] =
                                outside ? X(SHAPE::PAD) : read[r][b][pixel % SHAPE::PIXELS * lanes + i];
                        }
                    }
                }
            }
            m.write(out);
        }
        if (takes) {
            store[now.free_slot.index()][now.free_bank.index()][now.free_at.index() * FOLDS + now.free_fold.index()] =
                word;
        }
        now.next();
    }
}

}  // namespace hg

#endif
