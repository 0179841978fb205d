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
//             in bank x % span. A word is read when the next window needs it, or earlier if it is available and there
//             is room for it.
#ifndef HG_SLIDING_HPP
#define HG_SLIDING_HPP

#include "windows.hpp"

namespace hg {

// A word of a row, in one of BANKS memories of SIZE words.
template <int BANKS, int SIZE, int FOLDS>
struct bank_place {
    int bank, at;
    explicit bank_place(int word) : bank(wrapped(word, BANKS)), at(wrapped((word - bank) / BANKS * FOLDS, SIZE)) {}
    template <int STEP>
    void move() {
        const int banks = wrapped(STEP, BANKS), step = wrapped((STEP - banks) / BANKS * FOLDS, SIZE);
        const bool carry = bank + banks >= BANKS;
        bank += carry ? banks - BANKS : banks;
        at += step;
        at = at >= SIZE ? at - SIZE : at;
        at = carry ? above() : at;
    }
    int above() const { return at + FOLDS >= SIZE ? at + FOLDS - SIZE : at + FOLDS; }
};

template <typename WINDOW, int FOLDS, int ROWS, int COLUMNS, long long PAD, int PIXELS, int WINDOWS, typename X, int IN,
          int OUT>
void sliding(hls::stream<vec<X, IN> > &s, hls::stream<vec<X, OUT> > &m) {
    const int lanes = IN / PIXELS, tall = WINDOW::tall, across = (WINDOW::width - 1) / PIXELS + 1;
    static_assert(OUT == WINDOW::taps * WINDOWS * lanes, "a beat is all taps of all its windows");
    // The image in words: of a window, from one beat to the next, left of the image, of a beat. Tap 0 of window 0 is
    // pixel `skew` of those words.
    const int step = WINDOWS * WINDOW::stride_w / PIXELS, left = (WINDOW::left + PIXELS - 1) / PIXELS;
    const int skew = left * PIXELS - WINDOW::left;
    const int span = (skew + (WINDOWS - 1) * WINDOW::stride_w + WINDOW::wide - 1) / PIXELS + 1;
    typedef window<WINDOW::height, across, tall, span, WINDOW::stride_h, step, 1, 1, WINDOW::top, left, WINDOW::rows,
                   (WINDOW::columns - 1) / WINDOWS + 1> beats;
    const int words = WINDOW::height * across * FOLDS, size = ((COLUMNS - 1) / span + 1) * FOLDS;
    vec<X, IN> store[ROWS][span][size];
#pragma HLS AGGREGATE variable=store
#pragma HLS ARRAY_PARTITION variable=store complete dim=1
#pragma HLS ARRAY_PARTITION variable=store complete dim=2

    typedef bank_place<span, size, FOLDS> place;
    window_flow<beats, FOLDS> flow;
    const int origin = (tall == 1 ? -WINDOW::top * across : 0) - left;
    place free(0), row(origin), first(origin);
    int free_slot = 0, free_fold = 0, free_column = 0, slot = wrapped(-WINDOW::top, ROWS), fold = 0, taken = 0;
    while (!flow.over || taken < words) {
#pragma HLS PIPELINE II=1 style=flp
        const bool sends = !flow.over && taken >= flow.need;
        const bool room = taken - flow.keep < ROWS * COLUMNS * FOLDS;
        if (sends) {
            vec<X, IN> read[ROWS][span];
#pragma HLS ARRAY_PARTITION variable=read complete dim=0
            for (int r = 0; r < ROWS; r++) {
#pragma HLS UNROLL
                for (int b = 0; b < span; b++) {
#pragma HLS UNROLL
                    read[r][b] = store[r][b][(b < first.bank ? first.above() : first.at) + fold];
                }
            }
            vec<X, OUT> y;
            for (int h = 0; h < WINDOW::kernel_h; h++) {
#pragma HLS UNROLL
                const int line = flow.y + h * WINDOW::dilation_h * flow.row, turn = slot + h * WINDOW::dilation_h;
                const int r = turn >= ROWS ? turn - ROWS : turn;
                for (int w = 0; w < WINDOW::kernel_w; w++) {
#pragma HLS UNROLL
                    for (int n = 0; n < WINDOWS; n++) {
#pragma HLS UNROLL
                        const int pixel = skew + n * WINDOW::stride_w + w * WINDOW::dilation_w, word = pixel / PIXELS;
                        const int column = flow.x + word * FOLDS;
                        const int b = first.bank + word >= span ? first.bank + word - span : first.bank + word;
                        const bool outside = line < 0 || line >= words || column < 0 || column >= flow.row;
                        for (int i = 0; i < lanes; i++) {
#pragma HLS UNROLL
                            y[((h * WINDOW::kernel_w + w) * WINDOWS + n) * lanes + i] =
                                outside ? X(PAD) : read[r][b][pixel % PIXELS * lanes + i];
                        }
                    }
                }
            }
            m.write(y);
            if (fold < FOLDS - 1) {
                fold++;
            } else {
                fold = 0;
                if (!flow.row_end()) {
                    first.template move<step>();
                } else {
                    if (tall == 1) row.template move<WINDOW::stride_h * across>();
                    first = row;
                    slot += wrapped(WINDOW::stride_h, ROWS);
                    slot = slot >= ROWS ? slot - ROWS : slot;
                }
                flow.next();
            }
        }
        if (taken < words && (!sends || (room && !s.empty()))) {
            store[free_slot][free.bank][free.at + free_fold] = s.read();
            taken++;
            free_fold = free_fold == FOLDS - 1 ? 0 : free_fold + 1;
            if (free_fold == 0) {
                const bool row_end = tall > 1 && free_column == across - 1;
                free_column = free_column == across - 1 ? 0 : free_column + 1;
                free.template move<1>();
                if (row_end) {
                    free = place(0);
                    free_slot = free_slot == ROWS - 1 ? 0 : free_slot + 1;
                }
            }
        }
    }
}

}  // namespace hg

#endif
