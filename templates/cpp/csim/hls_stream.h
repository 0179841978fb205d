// Replacement of hls_stream.h for C simulation without vendor tools. It has only the members that the core uses. The
// program aborts on a read of an empty stream, and on values that remain in a stream.
#ifndef HG_CSIM_HLS_STREAM_H
#define HG_CSIM_HLS_STREAM_H

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace hls {

// Number of values in a stream, and its capacity; 0: unlimited.
struct level {
    const char *name;
    std::size_t held, depth;
};

// Yields to other processes until a stream is no longer full, or no longer empty. Returns false if there are no other
// processes: a stream then holds any number of values.
#ifndef HG_WAIT
#define HG_WAIT(level, full) false
#endif

template <typename T, int DEPTH = 0>
class stream;

template <typename T>
class stream<T, 0> {
    std::vector<T> values;
    std::size_t first;
    level state;
    stream(const stream &);
    stream &operator=(const stream &);

public:
    explicit stream(const char *name = "stream") : first(0), state() { state.name = name; }
    ~stream() {
        if (size() != 0) {
            std::fprintf(stderr, "%s: %lu values are left\n", state.name, static_cast<unsigned long>(size()));
            std::abort();
        }
    }
    std::size_t size() const { return state.held; }
    void bound(std::size_t depth) { state.depth = depth; }
    T read() {
        if (size() == 0 && !HG_WAIT(state, false)) {
            std::fprintf(stderr, "%s: read while it is empty\n", state.name);
            std::abort();
        }
        const T value = values[first++];
        state.held--;
        if (first == values.size()) {
            values.clear();
            first = 0;
        }
        return value;
    }
    void read(T &value) { value = read(); }
    void write(const T &value) {
        if (state.depth != 0 && size() >= state.depth) (void)HG_WAIT(state, true);
        values.push_back(value);
        state.held++;
#ifdef HG_TRACE
        HG_TRACE(state.name, value);
#endif
    }
};

// Stream with a declared capacity, for streams inside functions. Without processes the capacity is unlimited.
template <typename T, int DEPTH>
class stream : public stream<T, 0> {
public:
    explicit stream(const char *name = "stream") : stream<T, 0>(name) { this->bound(DEPTH); }
};

}  // namespace hls

#endif
