// Reductions of pools.
//
// Purpose     maximum: the larger of two elements. total: their sum.
// Contract    of(a, b) is exact if Y holds it. of(a, none) is a.
#ifndef HG_REDUCTIONS_HPP
#define HG_REDUCTIONS_HPP

#include "types.hpp"

namespace hg {

struct maximum {
    template <typename Y>
    static Y none() {
        return Y(traits<Y>::is_signed ? -(1LL << (traits<Y>::width - 1)) : 0LL);
    }
    template <typename Y>
    static Y of(const Y &a, const Y &b) {
        return b > a ? b : a;
    }
};

struct total {
    template <typename Y>
    static Y none() {
        return Y(0);
    }
    template <typename Y>
    static Y of(const Y &a, const Y &b) {
        return Y(a + b);
    }
};

}  // namespace hg

#endif
