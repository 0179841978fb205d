// Reductions of pools.
//
// Purpose     maximum: the larger of two elements. total: their sum.
// Contract    of(a, b) is exact if Y holds it.
#ifndef HG_REDUCTIONS_HPP
#define HG_REDUCTIONS_HPP

#include "types.hpp"

namespace hg {

struct maximum {
    template <typename Y>
    static Y of(const Y &a, const Y &b) {
        return b > a ? b : a;
    }
};

struct total {
    template <typename Y>
    static Y of(const Y &a, const Y &b) {
        return Y(a + b);
    }
};

}  // namespace hg

#endif
