// Stand-in of hls_stream.h for C simulation without a vendor's tools: a read of an empty stream, and values that are
// left in a stream, end the program instead of giving made-up values. Only what the core uses.
#ifndef HG_CSIM_HLS_STREAM_H
#define HG_CSIM_HLS_STREAM_H

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Whether a stream just now seems empty, as if values came later.
#ifndef HG_PAUSE
#define HG_PAUSE false
#endif

namespace hls {

template <typename T, int DEPTH = 0>
class stream;

template <typename T>
class stream<T, 0> {
    std::vector<T> values;
    std::size_t first;
    const char *name;
    stream(const stream &);
    stream &operator=(const stream &);

public:
    explicit stream(const char *name = "stream") : first(0), name(name) {}
    ~stream() {
        if (size() != 0) {
            std::fprintf(stderr, "%s: %lu values are left\n", name, static_cast<unsigned long>(size()));
            std::abort();
        }
    }
    bool empty() const { return HG_PAUSE || size() == 0; }
    std::size_t size() const { return values.size() - first; }
    T read() {
        if (size() == 0) {
            std::fprintf(stderr, "%s: read while it is empty\n", name);
            std::abort();
        }
        const T value = values[first++];
        if (first == values.size()) {
            values.clear();
            first = 0;
        }
        return value;
    }
    void read(T &value) { value = read(); }
    void write(const T &value) {
        values.push_back(value);
#ifdef HG_TRACE
        HG_TRACE(name, value);
#endif
    }
};

// Streams inside of functions say how many values they hold. Here they hold any number.
template <typename T, int DEPTH>
class stream : public stream<T, 0> {
public:
    explicit stream(const char *name = "stream") : stream<T, 0>(name) {}
};

}  // namespace hls

#endif
