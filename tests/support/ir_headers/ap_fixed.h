// Fixed-point numbers for analysis alone: their rounding is an opaque function of the bits, outside of every recurrence.
#ifndef HG_IR_AP_FIXED_H
#define HG_IR_AP_FIXED_H

#include "ap_int.h"

enum ap_q_mode { AP_RND, AP_RND_ZERO, AP_RND_MIN_INF, AP_RND_INF, AP_RND_CONV, AP_TRN, AP_TRN_ZERO };
enum ap_o_mode { AP_SAT, AP_SAT_ZERO, AP_SAT_SYM, AP_WRAP, AP_WRAP_SM };

long long opaque_fixed(long long bits);

template <int W, int I, bool S>
struct fixed_number {
    ap_number<W, S> bits;
    fixed_number() {}
    template <int W2, int I2, bool S2>
    fixed_number(const fixed_number<W2, I2, S2> &x) : bits(opaque_fixed(x.bits.to_int64())) {}
    template <int W2, bool S2>
    fixed_number(const ap_number<W2, S2> &x) : bits(opaque_fixed(x.to_int64())) {}
    fixed_number(long long x) : bits(opaque_fixed(x)) {}
    long long to_int64() const { return bits.to_int64(); }
    fixed_number operator<<(int n) const { return fixed_number(bits << n); }
    fixed_number operator>>(int n) const { return fixed_number(bits >> n); }
    fixed_number operator+(const fixed_number &x) const { return fixed_number(opaque_fixed((bits + x.bits).to_int64())); }
};
template <int W, int I, ap_q_mode Q = AP_TRN, ap_o_mode O = AP_WRAP>
struct ap_fixed : fixed_number<W, I, true> {
    ap_fixed() {}
    template <typename X>
    ap_fixed(const X &x) : fixed_number<W, I, true>(x) {}
};
template <int W, int I, ap_q_mode Q = AP_TRN, ap_o_mode O = AP_WRAP>
struct ap_ufixed : fixed_number<W, I, false> {
    ap_ufixed() {}
    template <typename X>
    ap_ufixed(const X &x) : fixed_number<W, I, false>(x) {}
};

#endif
