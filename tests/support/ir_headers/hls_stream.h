// Streams for analysis alone: reads and writes are opaque calls.
#ifndef HG_IR_HLS_STREAM_H
#define HG_IR_HLS_STREAM_H

extern "C" {
void ir_read(void *stream, void *value);
void ir_write(void *stream, const void *value);
}

namespace hls {

template <typename T, int DEPTH = 0>
class stream;

template <typename T>
class stream<T, 0> {
public:
    explicit stream(const char * = "") {}
    T read() {
        T value;
        ir_read(this, &value);
        return value;
    }
    void read(T &value) { value = read(); }
    void write(const T &value) {
        const T copy = value;
        ir_write(this, &copy);
    }
};

template <typename T, int DEPTH>
class stream : public stream<T, 0> {
public:
    explicit stream(const char * = "") {}
};

}  // namespace hls

#endif
