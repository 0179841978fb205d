// Windows of an image, shared by sliding, conv and pool.
//
// Purpose     window        Geometry of the windows of an image.
//             window_flow   Says in which iterations a process reads a word of the image, and in which it uses a word
//                           of a window. The order is fixed: no decision depends on data or on arrival.
//             window_words  The words of all windows, one by one.
// Parameters  SHAPE    Named constants of a process:
//                      HEIGHT, WIDTH   Pixels of an image, which arrive in raster order.
//                      KH, KW, SH, SW, DH, DW  Kernel, stride, dilation.
//                      PT, PL          Padding at top and left.
//                      OUT_H, OUT_W    Windows of an image.
//                      PAD             Code of the elements outside the image.
//                      GROUPS, FOLDS, REPEAT  For each window and group, all taps REPEAT times, each as the FOLDS
//                                      words of the group.
//                      DEPTH           Words of the ring buffer: at least those from the oldest to the newest that a
//                                      window needs.
//             PIXEL    Words of a pixel.
//             SENDS    Iterations that use a window.
// Contract    Windows are emitted in raster order. Positions are counted in words, to avoid multiplication. Words that
//             the next window adds are read in the last uses of the current one, as far as DEPTH allows, then without
//             uses. A word may take the place of one that the same iteration uses.
#ifndef HG_WINDOWS_HPP
#define HG_WINDOWS_HPP

#include "counters.hpp"

namespace hg {

template <typename SHAPE>
struct window : SHAPE {
    static const int taps = SHAPE::KH * SHAPE::KW;
    static const int tall = (SHAPE::KH - 1) * SHAPE::DH + 1, wide = (SHAPE::KW - 1) * SHAPE::DW + 1;
};

constexpr int wrapped(int value, int size) { return (value % size + size) % size; }
constexpr int clamped(int low, int value, int high) { return value < low ? low : value > high ? high : value; }

// Position n of an axis is FIRST + n * STRIDE, clamped to 0..LIMIT.
template <int FIRST, int STRIDE, int LIMIT>
struct clamped_axis {
    static constexpr int at(int n) { return clamped(0, FIRST + n * STRIDE, LIMIT); }
    static constexpr int step(int n) { return at(n + 1) - at(n); }
    // The first n whose step is not 0, and the first one after it whose step is not STRIDE.
    static const int begin = FIRST + STRIDE > 0 ? 0 : -FIRST / STRIDE;
    static const int inside = FIRST + begin * STRIDE < 0 ? begin + 1 : begin;
    static const int end = larger_of(inside, LIMIT - FIRST < 0 ? 0 : (LIMIT - FIRST) / STRIDE);
    // step(n) for n below COUNT, selected from constants: T has a constructor from int.
    template <typename T, int COUNT, typename N>
    static T select(const N &n, int unit, int offset) {
        const bool before = begin > 0 && n < begin, first = inside > begin && n == begin;
        const bool last = end < COUNT && n == end, after = end + 1 < COUNT && n > end;
        return before || after ? T(0)
               : first         ? T(step(begin) * unit + offset)
               : last          ? (step(end) > 0 ? T(step(end) * unit + offset) : T(0))
                               : T(STRIDE * unit + offset);
    }
};

// Words that windows need.
template <typename WINDOW, int PIXEL>
struct window_needs {
    static const int row = WINDOW::WIDTH * PIXEL, words = WINDOW::HEIGHT * row;
    // The newest row of an image that a row of windows needs, and the newest pixel of a row.
    typedef clamped_axis<WINDOW::tall - 1 - WINDOW::PT, WINDOW::SH, WINDOW::HEIGHT - 1> newest_row;
    static const int first_column = WINDOW::wide - 1 - WINDOW::PL;
    static constexpr int newest_column(int column, int limit) {
        return clamped(0, first_column + column * WINDOW::SW, limit);
    }
    static constexpr int oldest_row(int line) {
        return clamped(0, line * WINDOW::SH - WINDOW::PT, WINDOW::HEIGHT);
    }
    static constexpr int oldest_column(int column) {
        return clamped(0, column * WINDOW::SW - WINDOW::PL, WINDOW::WIDTH);
    }
    // The largest number of words from the oldest one that a window or a later one needs to the newest one.
    static constexpr int span(int limit) {
        int most_columns = 0, most = 0;
        for (int column = 0; column < WINDOW::OUT_W; column++) {
            most_columns = larger_of(most_columns, newest_column(column, limit) - oldest_column(column));
        }
        for (int line = 0; line < WINDOW::OUT_H; line++) {
            const int start = line * WINDOW::SH - WINDOW::PT;
            const bool kept = start < WINDOW::HEIGHT && (start + WINDOW::SH > 0 || line == WINDOW::OUT_H - 1);
            const int columns = kept ? most_columns : newest_column(WINDOW::OUT_W - 1, limit);
            most = larger_of(most, ((newest_row::at(line) - oldest_row(line)) * WINDOW::WIDTH + columns + 1) * PIXEL);
        }
        return most;
    }
};

// Words that are read from one window to the next. Columns may need words of the next row, if there is room for these:
// the words then arrive at a steady rate.
template <typename WINDOW, int PIXEL, int SENDS, int DEPTH>
struct window_reads {
    typedef window_needs<WINDOW, PIXEL> needs;
    typedef typename needs::newest_row newest_row;
    static const int next_row = clamped(0, needs::first_column, WINDOW::WIDTH - 1) + WINDOW::WIDTH;
    static const int limit = needs::span(next_row) <= DEPTH ? next_row : WINDOW::WIDTH - 1;
    static const int look = DEPTH - needs::span(limit);
    typedef clamped_axis<needs::first_column, WINDOW::SW, limit> newest_word;
    // Words before the first window, and after the last one. Words that two rows of windows share.
    static const int before = (newest_row::at(0) * WINDOW::WIDTH + newest_word::at(0) + 1) * PIXEL;
    static const int last = newest_row::at(WINDOW::OUT_H - 1) * WINDOW::WIDTH + newest_word::at(WINDOW::OUT_W - 1) + 1;
    static const int after = larger_of(0, needs::words - last * PIXEL);
    static const int shared = (newest_word::at(0) - newest_word::at(WINDOW::OUT_W - 1)) * PIXEL;
    static const int most = larger_of(larger_of(before, after), larger_of(WINDOW::SW * PIXEL,
                                                                          WINDOW::SH * needs::row + shared));
    // Uses of a window in which words of the next one are read: the last ones.
    static const int open_sends = smaller_of(SENDS, look + 1);
    static constexpr int window_iterations(int reads) { return SENDS - open_sends + larger_of(open_sends, reads); }
    static constexpr int iterations() {
        int in_row = 0, count = before;
        for (int column = 0; column < WINDOW::OUT_W - 1; column++) {
            in_row += window_iterations(newest_word::step(column) * PIXEL);
        }
        for (int line = 0; line < WINDOW::OUT_H; line++) {
            const int rise = line == WINDOW::OUT_H - 1 ? 0 : newest_row::step(line) * needs::row;
            const int reads = line == WINDOW::OUT_H - 1 ? after : rise > 0 ? rise + shared : 0;
            count += line == 0 || newest_row::step(line - 1) > 0 ? in_row : (WINDOW::OUT_W - 1) * SENDS;
            count += window_iterations(reads);
        }
        return count;
    }
};

template <typename WINDOW, int PIXEL, int SENDS, int DEPTH>
class window_flow {
    typedef window_reads<WINDOW, PIXEL, SENDS, DEPTH> order;
    typedef countdown<order::most> amount;
    static_assert(order::look >= 0, "DEPTH words hold a window");

    countdown<SENDS> sends;
    amount reads, next_reads;
    countdown<order::needs::words> missing;
    bool open, new_words;  // `new_words`: the row of windows needs words that the previous one does not
    counter<WINDOW::OUT_W> column;
    counter<WINDOW::OUT_H> line;

    // Begins a window, and finds the reads of the next one.
    void advance() {
        const amount in_row = order::newest_word::template select<amount, WINDOW::OUT_W - 1>(column.at, PIXEL, 0);
        const amount to_row = order::newest_row::template select<amount, WINDOW::OUT_H - 1>(line.at, order::needs::row,
                                                                                          order::shared);
        const bool rises =
            order::newest_row::template select<countdown<WINDOW::SH>, WINDOW::OUT_H - 1>(line.at, 1, 0).any;
        reads = next_reads;
        next_reads = !column.last ? (new_words ? in_row : amount(0)) : line.last ? amount(order::after) : to_row;
        if (column.last) {
            new_words = rises;
            line.next();
        }
        column.next();
    }

public:
    // Iterations of an image.
    static const int iterations = order::iterations();

    window_flow()
        : sends(0), reads(0), next_reads(order::before), missing(order::needs::words), open(true), new_words(true) {
        advance();
    }
    // This iteration uses a word of a window. It reads a word of the image.
    bool uses() const { return sends.any; }
    bool takes() const { return open & reads.any & missing.any; }
    void next() {
        const bool end = sends.last & reads.last, opens = sends.last | (sends.left <= order::open_sends + 1);
        if (takes()) missing.next();
        if (end) {
            sends = countdown<SENDS>(SENDS);
            advance();
        } else {
            sends.next();
            if (open) reads.next();
        }
        open = order::open_sends == SENDS || (!end && opens);
    }
};

// The words of windows. `at`: place in the ring buffer. `word`: its number in the window. first, last: of a sum.
// Iterations that use no word come between two sums, so that their results are dropped.
template <typename WINDOW, int GROUPS, int FOLDS, int REPEAT, int DEPTH>
class window_words {
    static const int pixel = GROUPS * FOLDS, row = WINDOW::WIDTH * pixel, words = WINDOW::HEIGHT * row;
    static const int sum_words = WINDOW::taps * FOLDS, window_sends = GROUPS * REPEAT * sum_words;
    // Moves from the last word of a tap, of a row of taps, of a sum, of a group, of a window and of a row of windows,
    // to the first word of the next one.
    static const int fold_back = FOLDS - 1, taps_back = (WINDOW::KW - 1) * WINDOW::DW * pixel;
    static const int lines_back = (WINDOW::KH - 1) * WINDOW::DH * row, row_back = taps_back + fold_back;
    static const int sum_back = lines_back + row_back, window_back = sum_back + (GROUPS - 1) * FOLDS;
    static const int across = WINDOW::SW * pixel, down = WINDOW::SH * row;
    static const int columns_back = (WINDOW::OUT_W - 1) * across;
    static const int top = -WINDOW::PT * row, left = -WINDOW::PL * pixel;
    typedef ring_step<DEPTH> step;

    ring<DEPTH> place;
    counter<FOLDS> fold;
    counter<WINDOW::KW * FOLDS> taps_word;
    counter<sum_words> sum_word;
    counter<REPEAT * sum_words> group_word;
    counter<window_sends> window_word;
    counter<WINDOW::OUT_W> window_column;
    position<left, columns_back + left + taps_back + across> column;
    position<top, top + (WINDOW::OUT_H - 1) * down + lines_back + larger_of(WINDOW::DH * row, down)> line;

public:
    window_flow<WINDOW, pixel, window_sends, DEPTH> flow;
    static const int iterations = window_flow<WINDOW, pixel, window_sends, DEPTH>::iterations;

    window_words() : place(wrapped(top + left, DEPTH)), column(left), line(top) {}
    int at() const { return place.index(); }
    int word() const { return window_word.index(); }
    bool outside() const { return !line.within(0, words) | !column.within(0, row); }
    bool first() const { return sum_word.at == 0; }
    bool last() const { return flow.uses() & sum_word.last; }
    void next() {
        const bool uses = flow.uses(), windows_end = window_word.last & window_column.last;
        place.move(!uses              ? step(0)
                   : windows_end      ? step(wrapped(down - columns_back - window_back, DEPTH))
                   : window_word.last ? step(wrapped(across - window_back, DEPTH))
                   : group_word.last  ? step(wrapped(FOLDS - sum_back, DEPTH))
                   : sum_word.last    ? step(wrapped(-sum_back, DEPTH))
                   : taps_word.last   ? step(wrapped(WINDOW::DH * row - row_back, DEPTH))
                   : fold.last        ? step(wrapped(WINDOW::DW * pixel - fold_back, DEPTH))
                                      : step(wrapped(1, DEPTH)));
        column.move(!(uses & fold.last)  ? 0
                    : windows_end        ? -columns_back - taps_back
                    : window_word.last   ? across - taps_back
                    : taps_word.last     ? -taps_back
                                         : WINDOW::DW * pixel);
        line.move(!(uses & taps_word.last) ? 0
                  : windows_end            ? down - lines_back
                  : sum_word.last          ? -lines_back
                                           : WINDOW::DH * row);
        if (uses) {
            if (window_word.last) window_column.next();
            fold.next();
            taps_word.next();
            sum_word.next();
            group_word.next();
            window_word.next();
        }
        flow.next();
    }
};

}  // namespace hg

#endif
