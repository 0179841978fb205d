// Integers of exact width as _BitInt of clang, so that LLVM IR shows the operators of the hardware. Only what the
// library of the C++ target uses. For analysis alone: nothing runs.
#ifndef HG_IR_AP_INT_H
#define HG_IR_AP_INT_H

template <int W, bool S>
struct bit_integer;
template <int W>
struct bit_integer<W, true> {
    typedef _BitInt(W < 2 ? 2 : W) type;
};
template <int W>
struct bit_integer<W, false> {
    typedef unsigned _BitInt(W) type;
};

constexpr int max_of(int a, int b) { return a > b ? a : b; }

template <int W, bool S>
struct ap_number {
    typedef typename bit_integer<W, S>::type number;
    static const int width = W;
    static const bool is_signed = S;
    number v;
    ap_number() {}
    template <int W2, bool S2>
    ap_number(const ap_number<W2, S2> &x) : v(static_cast<number>(x.v)) {}
    ap_number(bool x) : v(static_cast<number>(x)) {}
    ap_number(signed char x) : v(static_cast<number>(x)) {}
    ap_number(unsigned char x) : v(static_cast<number>(x)) {}
    ap_number(short x) : v(static_cast<number>(x)) {}
    ap_number(unsigned short x) : v(static_cast<number>(x)) {}
    ap_number(int x) : v(static_cast<number>(x)) {}
    ap_number(unsigned x) : v(static_cast<number>(x)) {}
    ap_number(long x) : v(static_cast<number>(x)) {}
    ap_number(unsigned long x) : v(static_cast<number>(x)) {}
    ap_number(long long x) : v(static_cast<number>(x)) {}
    ap_number(unsigned long long x) : v(static_cast<number>(x)) {}
    // Shifts by constants may move out all bits, which is undefined for _BitInt. Other shifts are assumed to be less.
    static bool beyond(int n) { return __builtin_constant_p(n) && n >= W; }
    long long to_int64() const { return static_cast<long long>(v); }
    unsigned long long to_uint64() const { return static_cast<unsigned long long>(v); }
    int to_int() const { return static_cast<int>(v); }
    bool operator[](int bit) const { return ((v >> bit) & 1) != 0; }
    bool operator!() const { return v == 0; }
    ap_number operator~() const {
        ap_number y;
        y.v = static_cast<number>(~v);
        return y;
    }
    ap_number<W + 1, true> operator-() const {
        ap_number<W + 1, true> y;
        y.v = static_cast<typename ap_number<W + 1, true>::number>(-static_cast<typename bit_integer<W + 1, true>::type>(v));
        return y;
    }
    ap_number operator<<(int n) const {
        ap_number y;
        y.v = beyond(n) ? static_cast<number>(0) : static_cast<number>(v << n);
        return y;
    }
    ap_number operator>>(int n) const {
        ap_number y;
        y.v = beyond(n) ? static_cast<number>(v < 0 ? -1 : 0) : static_cast<number>(v >> n);
        return y;
    }
    template <typename X>
    ap_number &operator+=(const X &x) { return *this = ap_number(*this + x); }
    template <typename X>
    ap_number &operator-=(const X &x) { return *this = ap_number(*this - x); }
    ap_number &operator++() { return *this += 1; }
    ap_number operator++(int) {
        const ap_number old = *this;
        *this += 1;
        return old;
    }
};

template <int W>
struct ap_int : ap_number<W, true> {
    ap_int() {}
    template <typename X>
    ap_int(const X &x) : ap_number<W, true>(x) {}
};
template <int W>
struct ap_uint : ap_number<W, false> {
    ap_uint() {}
    template <typename X>
    ap_uint(const X &x) : ap_number<W, false>(x) {}
};

// Width and sign of native integers.
template <typename X>
struct native {};
#define HG_IR_NATIVE(TYPE, W, S)                                                                                       \
    template <>                                                                                                        \
    struct native<TYPE> {                                                                                              \
        typedef ap_number<W, S> type;                                                                                  \
    };
HG_IR_NATIVE(bool, 1, false)
HG_IR_NATIVE(signed char, 8, true)
HG_IR_NATIVE(unsigned char, 8, false)
HG_IR_NATIVE(short, 16, true)
HG_IR_NATIVE(unsigned short, 16, false)
HG_IR_NATIVE(int, 32, true)
HG_IR_NATIVE(unsigned, 32, false)
HG_IR_NATIVE(long, 64, true)
HG_IR_NATIVE(unsigned long, 64, false)
HG_IR_NATIVE(long long, 64, true)
HG_IR_NATIVE(unsigned long long, 64, false)

// Width of both operands in a common type, of operands A and B.
template <typename A, typename B>
struct common {
    static const bool sign = A::is_signed || B::is_signed;
    static const int width =
        max_of(A::width + (sign && !A::is_signed ? 1 : 0), B::width + (sign && !B::is_signed ? 1 : 0));
};
#define HG_IR_OPERATOR(OP, WIDTH, SIGN)                                                                                \
    template <int W1, bool S1, int W2, bool S2>                                                                        \
    ap_number<(WIDTH), (SIGN)> operator OP(const ap_number<W1, S1> &a, const ap_number<W2, S2> &b) {                   \
        typedef ap_number<(WIDTH), (SIGN)> result;                                                                     \
        result y;                                                                                                      \
        y.v = static_cast<typename result::number>(static_cast<typename result::number>(a.v)                           \
                                                       OP static_cast<typename result::number>(b.v));                  \
        return y;                                                                                                      \
    }                                                                                                                  \
    template <int W1, bool S1, typename B, typename N = typename native<B>::type, int W2 = N::width,                   \
              bool S2 = N::is_signed>                                                                                  \
    ap_number<(WIDTH), (SIGN)> operator OP(const ap_number<W1, S1> &a, const B &b) {                                   \
        return a OP N(b);                                                                                              \
    }                                                                                                                  \
    template <typename A, int W2, bool S2, typename N = typename native<A>::type, int W1 = N::width,                   \
              bool S1 = N::is_signed>                                                                                  \
    ap_number<(WIDTH), (SIGN)> operator OP(const A &a, const ap_number<W2, S2> &b) {                                   \
        return N(a) OP b;                                                                                              \
    }
#define HG_IR_COMMON common<ap_number<W1, S1>, ap_number<W2, S2> >
HG_IR_OPERATOR(+, (HG_IR_COMMON::width + 1), (HG_IR_COMMON::sign))
HG_IR_OPERATOR(-, (HG_IR_COMMON::width + 1), true)
HG_IR_OPERATOR(*, (W1 + W2), (HG_IR_COMMON::sign))
HG_IR_OPERATOR(/, (W1 + (S2 ? 1 : 0)), (HG_IR_COMMON::sign))
HG_IR_OPERATOR(%, (W1), (S1))
HG_IR_OPERATOR(&, (HG_IR_COMMON::width), (HG_IR_COMMON::sign))
HG_IR_OPERATOR(|, (HG_IR_COMMON::width), (HG_IR_COMMON::sign))
HG_IR_OPERATOR(^, (HG_IR_COMMON::width), (HG_IR_COMMON::sign))
#define HG_IR_COMPARE(OP)                                                                                              \
    template <int W1, bool S1, int W2, bool S2>                                                                        \
    bool operator OP(const ap_number<W1, S1> &a, const ap_number<W2, S2> &b) {                                         \
        typedef typename bit_integer<HG_IR_COMMON::width, HG_IR_COMMON::sign>::type type;                              \
        return static_cast<type>(a.v) OP static_cast<type>(b.v);                                                       \
    }                                                                                                                  \
    template <int W1, bool S1, typename B, typename N = typename native<B>::type>                                      \
    bool operator OP(const ap_number<W1, S1> &a, const B &b) {                                                         \
        return a OP N(b);                                                                                              \
    }                                                                                                                  \
    template <typename A, int W2, bool S2, typename N = typename native<A>::type>                                      \
    bool operator OP(const A &a, const ap_number<W2, S2> &b) {                                                         \
        return N(a) OP b;                                                                                              \
    }
HG_IR_COMPARE(==)
HG_IR_COMPARE(!=)
HG_IR_COMPARE(<)
HG_IR_COMPARE(<=)
HG_IR_COMPARE(>)
HG_IR_COMPARE(>=)

#endif
