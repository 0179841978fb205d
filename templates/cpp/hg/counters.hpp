// Counters whose next value takes less than a cycle: their comparisons are registers, made one step ahead.
//
// Purpose     counter    Counts 0, 1, ... COUNT - 1 and starts again. `last` is true at COUNT - 1.
//             countdown  Counts from a number of at most MOST down to 0. `any`: not 0. `last`: at most 1. `second`:
//                        at most 2. After that, `left` has no meaning.
//             ring       A position in a ring of SIZE places. ring_step is a move of 0 to SIZE places.
//             position   An integer between LOW and HIGH, moved by steps.
// Contract    A step that nothing of the counter decides may be computed in earlier cycles, so a counter that does not
//             move is given the step 0 instead of an enable.
#ifndef HG_COUNTERS_HPP
#define HG_COUNTERS_HPP

#include "types.hpp"

namespace hg {

constexpr int larger_of(int a, int b) { return a > b ? a : b; }
constexpr int smaller_of(int a, int b) { return a < b ? a : b; }
constexpr int counter_bits(int most) { return larger_of(1, bit_length(most)); }

// Counters have exact widths in hardware. C simulation counts with int, which is faster. HG_EXACT and HG_EXACT_COUNTERS
// select the exact widths there, too.
#if defined(__SYNTHESIS__) || defined(HG_EXACT) || defined(HG_EXACT_COUNTERS)
template <int BITS>
using count_type = ap_uint<BITS>;
template <int BITS>
using step_type = ap_int<BITS>;
template <typename T>
int index_of(const T &number) {
    return static_cast<int>(number.to_int64());
}
#else
template <int BITS>
using count_type = int;
template <int BITS>
using step_type = int;
inline int index_of(int number) { return number; }
#endif

template <int COUNT>
struct counter {
    count_type<counter_bits(COUNT - 1)> at;
    bool last;
    counter() : at(0), last(COUNT == 1) {}
    int index() const { return index_of(at); }
    // The next number, or 0.
    void next(bool restart = false) {
        const bool next_last = COUNT == 1 || ((at == larger_of(COUNT - 2, 0)) & !restart);
        at = last | restart ? count_type<counter_bits(COUNT - 1)>(0) : count_type<counter_bits(COUNT - 1)>(at + 1);
        last = next_last;
    }
};

template <int MOST>
struct countdown {
    count_type<counter_bits(MOST)> left;
    bool any, last, second;
    explicit countdown(int from) : left(from), any(from > 0), last(from <= 1), second(from <= 2) {}
    void next() {
        any = !last;
        last = second;
        second = second | (left <= 3);
        left = count_type<counter_bits(MOST)>(left - 1);
    }
};

template <int SIZE>
struct ring_step {
    count_type<counter_bits(SIZE)> ahead;
    step_type<counter_bits(SIZE) + 1> around;
    explicit ring_step(int places) : ahead(places), around(places - SIZE) {}
};

template <int SIZE>
struct ring {
    static const int bits = counter_bits(SIZE - 1);
    count_type<bits> at;
    explicit ring(int start) : at(start) {}
    int index() const { return index_of(at); }
    int above() const { return at == SIZE - 1 ? 0 : index() + 1; }
    // True if the move goes around the end.
    bool move(const ring_step<SIZE> &step) {
        const step_type<counter_bits(SIZE) + 2> around = at + step.around;
        const bool wraps = around >= 0;
        at = wraps ? count_type<bits>(around) : count_type<bits>(at + step.ahead);
        return wraps;
    }
};

template <int LOW, int HIGH>
struct position {
    static const int bits = 1 + larger_of(bit_length(larger_of(-LOW - 1, 0)), bit_length(larger_of(HIGH, 0)));
    step_type<bits> at;
    explicit position(int start) : at(start) {}
    void move(int step) { at = step_type<bits>(at + step_type<bits + 1>(step)); }
    int index() const { return index_of(at); }
    bool within(int low, int high) const { return (at >= low) & (at < high); }
};

}  // namespace hg

#endif
