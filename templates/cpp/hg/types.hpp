// Types that all processes share.
//
// Purpose     vec<T, N>    One beat of a stream: N elements side by side.
//             HG_ROM       The type of constants.
//             sum_type<T>  The type of sums that become a T.
// Contract    C++14 for HLS. A process consumes exactly the beats of one frame from its streams and emits the beats
//             of one frame. A library function keeps no state between frames.
#ifndef HG_TYPES_HPP
#define HG_TYPES_HPP

#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>

// Constants have their exact type in hardware. C simulation gives them a native type C with the same values:
// compilers need a thousand times longer for arrays of class types. HG_EXACT selects the exact type there, too.
#if defined(__SYNTHESIS__) || defined(HG_EXACT)
#define HG_ROM(C, T) T
#else
#define HG_ROM(C, T) C
#endif

namespace hg {

// Bits of a number that is not negative.
constexpr int bit_length(int value) { return value == 0 ? 0 : 1 + bit_length(value / 2); }

template <typename T, int N>
struct vec {
    T e[N];
    T &operator[](int i) { return e[i]; }
    const T &operator[](int i) const { return e[i]; }
};

// Elements of a stream with element type T. bits: width of a port; code: type of the numbers.
template <typename T>
struct traits;
template <int W>
struct traits<ap_int<W> > {
    static const int width = W;
    static const bool is_signed = true;
};
template <int W>
struct traits<ap_uint<W> > {
    static const int width = W;
    static const bool is_signed = false;
};

// Sums have their exact type in hardware, too, and partial sums may wrap in it. C simulation adds modulo 2^32, many
// times faster. T takes the low bits.
#if defined(__SYNTHESIS__) || defined(HG_EXACT)
template <typename T>
struct sum_type {
    typedef T type;
};
#else
template <bool, typename T>
struct narrow_sum {
    typedef T type;
};
template <typename T>
struct narrow_sum<true, T> {
    typedef unsigned type;
};
template <typename T>
struct sum_type : narrow_sum<(traits<T>::width <= 32), T> {};
#endif

// A number as an addend of a sum of type SUM.
template <typename SUM>
struct part_of {
    template <typename X>
    static const X &of(const X &x) {
        return x;
    }
};
template <>
struct part_of<unsigned> {
    template <int W>
    static unsigned of(const ap_int<W> &x) {
        return static_cast<unsigned>(x.to_int64());
    }
    template <int W>
    static unsigned of(const ap_uint<W> &x) {
        return static_cast<unsigned>(x.to_uint64());
    }
    static unsigned of(long long x) { return static_cast<unsigned>(x); }
};

}  // namespace hg

#endif
