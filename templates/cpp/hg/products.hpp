// Products of codes and weights.
//
// Purpose     multiply: any weights. bipolar: weights of 1 and -1, one bit each. agreements: codes and weights are
//             bits; equal ones are counted.
// Contract    of(x, w) is exact in the type that it returns.
#ifndef HG_PRODUCTS_HPP
#define HG_PRODUCTS_HPP

#include "types.hpp"

namespace hg {

struct multiply {
    template <typename SUM, typename X, typename W>
    static SUM of(const X &x, const W &w) {
        return SUM(part_of<SUM>::of(x) * part_of<SUM>::of(w));
    }
};

struct bipolar {
    template <typename SUM, typename X, typename W>
    static SUM of(const X &x, const W &w) {
        return w != 0 ? SUM(part_of<SUM>::of(x)) : SUM(-part_of<SUM>::of(x));
    }
};

struct agreements {
    template <typename SUM, typename X, typename W>
    static SUM of(const X &x, const W &w) {
        return SUM((part_of<SUM>::of(x) != 0) == (w != 0) ? 1 : 0);
    }
};

}  // namespace hg

#endif
