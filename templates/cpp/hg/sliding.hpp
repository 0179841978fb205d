// sliding: line buffer that emits whole windows of an image.
//
// Purpose     For every window, emits FOLDS beats of all its taps. Tap t = kh * KW + kw has the elements of word f of
//             its pixel, or PAD outside the image. With WINDOWS > 1, a beat holds WINDOWS adjacent windows of a row.
//             Tap t of window n is then at index t * WINDOWS + n. Elements after the last window of a row are
//             undefined.
// Parameters  WINDOW   window<...>, in pixels.
//             FOLDS    Words of a pixel.
//             ROWS     Stored rows; 1 if the kernel has one row.
//             COLUMNS  Words of a row. If the kernel has one row: stored words, a multiple of `span`.
//             PAD      Code of the elements outside the image.
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
// `span`: of a beat. Tap 0 of window 0 is pixel `skew` of those words.
template <typename WINDOW, int PIXELS, int WINDOWS>
struct sliding_words {
    static const int across = (WINDOW::width - 1) / PIXELS + 1, step = WINDOWS * WINDOW::stride_w / PIXELS;
    static const int left = (WINDOW::left + PIXELS - 1) / PIXELS, skew = left * PIXELS - WINDOW::left;
    static const int span = (skew + (WINDOWS - 1) * WINDOW::stride_w + WINDOW::wide - 1) / PIXELS + 1;
    typedef window<WINDOW::height, across, WINDOW::tall, span, WINDOW::stride_h, step, 1, 1, WINDOW::top, left,
                   WINDOW::rows, (WINDOW::columns - 1) / WINDOWS + 1> beats;
};

// `first`, `slot`: place of the first word of a window, and slot of its first row. `x`, `y`: position of its first tap
// in words. free_...: place of the next word of the image.
template <typename WORDS, int FOLDS, int ROWS, int COLUMNS>
class sliding_order {
    typedef typename WORDS::beats beats;
    typedef window_needs<beats, FOLDS> needs;
    static const int back = -(beats::columns - 1) * WORDS::step;
    static const int down = beats::tall == 1 ? beats::stride_h * WORDS::across : 0;
    static const int top = -beats::top * needs::row, left = -WORDS::left * FOLDS;
    counter<beats::columns> column;
    counter<WORDS::across> free_column;

public:
    static const int row = needs::row, words = needs::words, bank_words = (COLUMNS - 1) / WORDS::span + 1;
    window_flow<beats, FOLDS, FOLDS, ROWS * COLUMNS * FOLDS> flow;
    static const int iterations = window_flow<beats, FOLDS, FOLDS, ROWS * COLUMNS * FOLDS>::iterations;
    counter<FOLDS> fold, free_fold;
    bank_place<WORDS::span, bank_words> first;
    ring<ROWS> slot;
    position<left, left + (WORDS::step - back) * FOLDS> x;
    position<top, top + beats::rows * beats::stride_h * row> y;
    counter<WORDS::span> free_bank;
    counter<bank_words> free_at;
    counter<ROWS> free_slot;

    sliding_order()
        : first((beats::tall == 1 ? -beats::top * WORDS::across : 0) - WORDS::left), slot(wrapped(-beats::top, ROWS)),
          x(left), y(top) {}
    void next() {
        const bool takes = flow.takes(), uses = flow.uses(), moves = uses & fold.last, row_end = moves & column.last;
        first.template move<WORDS::step, down + back>(moves, row_end);
        slot.move(ring_step<ROWS>(row_end ? wrapped(beats::stride_h, ROWS) : 0));
        x.move(!moves ? 0 : row_end ? back * FOLDS : WORDS::step * FOLDS);
        y.move(row_end ? beats::stride_h * row : 0);
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

template <typename WINDOW, int FOLDS, int ROWS, int COLUMNS, long long PAD, int PIXELS, int WINDOWS, typename X, int IN,
          int OUT>
void sliding(hls::stream<vec<X, IN> > &s, hls::stream<vec<X, OUT> > &m) {
    typedef sliding_words<WINDOW, PIXELS, WINDOWS> words;
    typedef sliding_order<words, FOLDS, ROWS, COLUMNS> order;
    const int lanes = IN / PIXELS, span = words::span;
    static_assert(OUT == WINDOW::taps * WINDOWS * lanes, "a beat is all taps of all its windows");
    vec<X, IN> store[ROWS][span][order::bank_words * FOLDS];
#pragma HLS AGGREGATE variable=store
#pragma HLS ARRAY_PARTITION variable=store complete dim=1
#pragma HLS ARRAY_PARTITION variable=store complete dim=2

    order next;
    for (int iteration = 0; iteration < order::iterations; iteration++) {
#pragma HLS PIPELINE II=1 style=flp
        const order now = next;
        next.next();
        const bool takes = now.flow.takes();
        vec<X, IN> word;
        if (takes) word = s.read();
        if (now.flow.uses()) {
            vec<X, IN> read[ROWS][span];
#pragma HLS ARRAY_PARTITION variable=read complete dim=0
            for (int r = 0; r < ROWS; r++) {
#pragma HLS UNROLL
                for (int b = 0; b < span; b++) {
#pragma HLS UNROLL
                    const int at = b < now.first.bank.index() ? now.first.at.above() : now.first.at.index();
                    read[r][b] = store[r][b][at * FOLDS + now.fold.index()];
                }
            }
            vec<X, OUT> out;
            for (int h = 0; h < WINDOW::kernel_h; h++) {
#pragma HLS UNROLL
                const int below = h * WINDOW::dilation_h * order::row, turn = now.slot.index() + h * WINDOW::dilation_h;
                const int r = turn >= ROWS ? turn - ROWS : turn;
                const bool inside = now.y.within(-below, order::words - below);
                for (int w = 0; w < WINDOW::kernel_w; w++) {
#pragma HLS UNROLL
                    for (int n = 0; n < WINDOWS; n++) {
#pragma HLS UNROLL
                        const int pixel = words::skew + n * WINDOW::stride_w + w * WINDOW::dilation_w;
                        const int right = pixel / PIXELS;
                        const int turned = now.first.bank.index() + right, b = turned >= span ? turned - span : turned;
                        const bool outside = !inside | !now.x.within(-right * FOLDS, order::row - right * FOLDS);
                        for (int i = 0; i < lanes; i++) {
#pragma HLS UNROLL
                            out[((h * WINDOW::kernel_w + w) * WINDOWS + n) * lanes + i] =
                                outside ? X(PAD) : read[r][b][pixel % PIXELS * lanes + i];
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
    }
}

}  // namespace hg

#endif
