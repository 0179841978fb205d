// The integers of the core, mapped to ac_types.
#ifndef HG_CSIM_AC_AP_INT_H
#define HG_CSIM_AC_AP_INT_H

#include <ac_int.h>

template <int W>
using ap_int = ac_int<W, true>;
template <int W>
using ap_uint = ac_int<W, false>;

#endif
