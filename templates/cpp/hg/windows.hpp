// Windows of an image, shared by sliding, conv and pool.
//
// Purpose     window        Kernel, stride, dilation and padding on an image.
//             window_flow   Counts the words of the image that the current window still lacks, and those that it
//                           still needs.
//             window_words  The words of all windows, one by one.
// Parameters  HEIGHT, WIDTH   Pixels of an image, which arrive in raster order.
//             KH, KW, SH, SW, DH, DW  Kernel, stride, dilation.
//             PT, PL          Padding at top and left.
//             OUT_H, OUT_W    Windows of an image.
//             PIXEL           Words of a pixel.
//             GROUPS, FOLDS, REPEAT  For each window and group, all taps REPEAT times, each as the FOLDS words of the
//                             group.
//             DEPTH           Words of the ring buffer: at least those from the oldest to the newest that a window
//                             needs.
// Contract    Windows are emitted in raster order. Positions are counted in words, to avoid multiplication.
#ifndef HG_WINDOWS_HPP
#define HG_WINDOWS_HPP

#include "types.hpp"

namespace hg {

template <int HEIGHT, int WIDTH, int KH, int KW, int SH, int SW, int DH, int DW, int PT, int PL, int OUT_H, int OUT_W>
struct window {
    static const int height = HEIGHT, width = WIDTH, kernel_h = KH, kernel_w = KW, stride_h = SH, stride_w = SW;
    static const int dilation_h = DH, dilation_w = DW, top = PT, left = PL, rows = OUT_H, columns = OUT_W;
    static const int taps = KH * KW, tall = (KH - 1) * DH + 1, wide = (KW - 1) * DW + 1;
};

constexpr int wrapped(int value, int size) { return (value % size + size) % size; }

// Counts windows. y, x: row and column of the first tap, in words of an image and of a row. `need`: number of the
// image's words that must have arrived. `keep`: the first word that this or a later window needs.
template <typename WINDOW, int PIXEL>
struct window_flow {
    static const int row = WINDOW::width * PIXEL, words = WINDOW::height * row;
    static const int first_y = -WINDOW::top * row, last_y = first_y + (WINDOW::rows - 1) * WINDOW::stride_h * row;
    static const int first_x = -WINDOW::left * PIXEL;
    static const int last_x = first_x + (WINDOW::columns - 1) * WINDOW::stride_w * PIXEL;
    int y, x, need, keep;
    bool over;

    window_flow() : y(first_y), x(first_x), need(0), keep(0), over(false) { place(); }
    bool row_end() const { return x == last_x; }
    void next() {
        over = row_end() && y == last_y;
        y += row_end() ? WINDOW::stride_h * row : 0;
        x = row_end() ? first_x : x + WINDOW::stride_w * PIXEL;
        place();
    }

private:
    static int within(int low, int value, int high) { return value < low ? low : value > high ? high : value; }
    void place() {
        need = within(0, y + (WINDOW::tall - 1) * row, words - row) +
               within(0, x + (WINDOW::wide - 1) * PIXEL, row - PIXEL) + PIXEL;
        const bool begun = y < words && (y + WINDOW::stride_h * row > 0 || y == last_y);
        keep = within(0, y, words) + (begun ? within(0, x, row) : 0);
    }
};

// The words of windows. `at`: position in the ring buffer. `word`: its number in the window. first, last: of a sum.
template <typename WINDOW, int GROUPS, int FOLDS, int REPEAT, int DEPTH>
class window_words {
    static const int pixel = GROUPS * FOLDS, row = WINDOW::width * pixel;
    // Position changes from the last word of a tap, of a row of taps, of a sum, of a group, of a window and of a row
    // of windows, to the first word of the next one.
    static const int fold_back = FOLDS - 1, row_back = (WINDOW::kernel_w - 1) * WINDOW::dilation_w * pixel + fold_back;
    static const int sum_back = (WINDOW::kernel_h - 1) * WINDOW::dilation_h * row + row_back;
    static const int window_back = sum_back + (GROUPS - 1) * FOLDS;
    static const int next_tap = wrapped(WINDOW::dilation_w * pixel - fold_back, DEPTH);
    static const int next_row = wrapped(WINDOW::dilation_h * row - row_back, DEPTH);
    static const int next_sum = wrapped(-sum_back, DEPTH), next_group = wrapped(FOLDS - sum_back, DEPTH);
    static const int next_window = wrapped(WINDOW::stride_w * pixel - window_back, DEPTH);
    static const int next_windows =
        wrapped(WINDOW::stride_h * row - (WINDOW::columns - 1) * WINDOW::stride_w * pixel - window_back, DEPTH);

public:
    window_flow<WINDOW, pixel> flow;
    int at, word;

private:
    int fold, tap_x, tap_y, repeat, group, column, line;

public:
    window_words()
        : at(wrapped(-WINDOW::top * row - WINDOW::left * pixel, DEPTH)), word(0), fold(0), tap_x(0), tap_y(0),
          repeat(0), group(0), column(flow.x), line(flow.y) {}
    bool outside() const { return line < 0 || line >= flow.words || column < 0 || column >= row; }
    bool first() const { return fold == 0 && tap_x == 0 && tap_y == 0; }
    bool last() const { return fold == FOLDS - 1 && tap_x == WINDOW::kernel_w - 1 && tap_y == WINDOW::kernel_h - 1; }
    void next() {
        const bool tap_end = fold == FOLDS - 1, row_end = tap_end && tap_x == WINDOW::kernel_w - 1;
        const bool sum_end = last(), group_end = sum_end && repeat == REPEAT - 1;
        const bool window_end = group_end && group == GROUPS - 1, windows_end = window_end && flow.row_end();
        const int move = windows_end  ? next_windows
                         : window_end ? next_window
                         : group_end  ? next_group
                         : sum_end    ? next_sum
                         : row_end    ? next_row
                         : tap_end    ? next_tap
                                      : wrapped(1, DEPTH);
        at = at + move < DEPTH ? at + move : at + move - DEPTH;
        word = window_end ? 0 : word + 1;
        if (window_end) flow.next();
        fold = tap_end ? 0 : fold + 1;
        if (tap_end) tap_x = row_end ? 0 : tap_x + 1;
        if (row_end) tap_y = sum_end ? 0 : tap_y + 1;
        if (sum_end) repeat = group_end ? 0 : repeat + 1;
        if (group_end) group = window_end ? 0 : group + 1;
        if (tap_end) column = row_end ? flow.x : column + WINDOW::dilation_w * pixel;
        if (row_end) line = sum_end ? flow.y : line + WINDOW::dilation_h * row;
    }
};

}  // namespace hg

#endif
