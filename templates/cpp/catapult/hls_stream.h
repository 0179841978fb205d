// The streams of the core in Catapult: aliases of ac_channel.
#ifndef HG_CATAPULT_HLS_STREAM_H
#define HG_CATAPULT_HLS_STREAM_H

#include <ac_channel.h>

namespace hls {

template <typename T, int DEPTH = 0>
class stream;

template <typename T>
class stream<T, 0> : public ac_channel<T> {
public:
    explicit stream(const char * = "") {}
};

// Stream with a declared capacity, for streams inside functions.
template <typename T, int DEPTH>
class stream : public stream<T, 0> {
public:
    explicit stream(const char * = "") {}
};

}  // namespace hls

#endif
