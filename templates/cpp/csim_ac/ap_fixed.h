// The fixed-point numbers of the core, mapped to ac_types. Modes with the same names behave identically.
#ifndef HG_CSIM_AC_AP_FIXED_H
#define HG_CSIM_AC_AP_FIXED_H

#include <ac_fixed.h>

#include "ap_int.h"

typedef ac_q_mode ap_q_mode;
typedef ac_o_mode ap_o_mode;

static const ac_q_mode AP_TRN = AC_TRN, AP_TRN_ZERO = AC_TRN_ZERO, AP_RND = AC_RND, AP_RND_ZERO = AC_RND_ZERO,
                       AP_RND_INF = AC_RND_INF, AP_RND_MIN_INF = AC_RND_MIN_INF, AP_RND_CONV = AC_RND_CONV;
static const ac_o_mode AP_WRAP = AC_WRAP, AP_SAT = AC_SAT, AP_SAT_ZERO = AC_SAT_ZERO, AP_SAT_SYM = AC_SAT_SYM;

template <int W, int I, ac_q_mode Q = AC_TRN, ac_o_mode O = AC_WRAP>
using ap_fixed = ac_fixed<W, I, true, Q, O>;
template <int W, int I, ac_q_mode Q = AC_TRN, ac_o_mode O = AC_WRAP>
using ap_ufixed = ac_fixed<W, I, false, Q, O>;

#endif
