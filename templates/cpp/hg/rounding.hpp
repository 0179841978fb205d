// Rounding to integers, and clamping.
//
// Purpose     round_shift<MODE, SHIFT>(x) = round(x / 2^SHIFT), clamp<LOW, HIGH>(x). MODE is a rounding of QONNX:
//             round_half_even ROUND, round_up CEIL, round_down FLOOR, round_away UP, round_to_zero DOWN,
//             round_half_away HALF_UP, round_half_to_zero HALF_DOWN.
// Contract    Exact integers. The type of x has more than SHIFT bits, and is signed unless no x is negative.
#ifndef HG_ROUNDING_HPP
#define HG_ROUNDING_HPP

#include "types.hpp"

namespace hg {

enum rounding {
    round_half_even,
    round_up,
    round_down,
    round_away,
    round_to_zero,
    round_half_away,
    round_half_to_zero
};

// Returns true if rounding goes up from the floor. tie, above, any: the fraction is a half; more than a half; not 0.
inline bool rounds_up(rounding mode, bool negative, bool odd, bool tie, bool above, bool any) {
    switch (mode) {
        case round_half_even: return above || (tie && odd);
        case round_up: return any;
        case round_away: return any && !negative;
        case round_to_zero: return any && negative;
        case round_half_away: return above || (tie && !negative);
        case round_half_to_zero: return above || (tie && negative);
        default: return false;
    }
}

template <rounding MODE, int SHIFT, typename T>
T round_shift(const T &x) {
    if (SHIFT == 0) return x;
    const T whole = x >> SHIFT;
    const T rest = x - T(whole << SHIFT);
    const T half = T(1) << (SHIFT > 0 ? SHIFT - 1 : 0);
    return T(whole + T(rounds_up(MODE, x < 0, (whole & 1) != 0, rest == half, rest > half, rest != 0) ? 1 : 0));
}

template <long long LOW, long long HIGH, typename T>
T clamp(const T &x) {
    return x < LOW ? T(LOW) : x > HIGH ? T(HIGH) : x;
}

}  // namespace hg

#endif
