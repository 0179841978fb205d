// Drives a verilated core from C arrays: at full rate, beats in, beats out; or, with a port each way, with random stalls
// and resets. HLSGEN_INPUTS(X) stands for an X(port, bytes of a word) for each port, HLSGEN_OUTPUTS(X) for an X(port).
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

namespace {

template <class T>
void put(T& port, const uint8_t* data, int bytes) {
    T value = 0;
    std::memcpy(&value, data, bytes);
    port = value;
}
template <std::size_t N>
void put(VlWide<N>& port, const uint8_t* data, int bytes) {
    std::memset(&port[0], 0, 4 * N);
    std::memcpy(&port[0], data, bytes);
}
template <class T>
void get(const T& port, uint8_t* data, int bytes) {
    std::memcpy(data, &port, bytes);
}
template <std::size_t N>
void get(const VlWide<N>& port, uint8_t* data, int bytes) {
    std::memcpy(data, &port[0], bytes);
}

// All bytes of a word are kept.
template <class T>
void keep_all(T& port, int bytes) {
    std::vector<uint8_t> ones((bytes + 7) / 8);
    for (int i = 0; i < bytes; i += 8) ones[i / 8] = bytes - i < 8 ? (1 << (bytes - i)) - 1 : 255;
    put(port, ones.data(), ones.size());
}

// Numbers that look random, the same for the same seed (xorshift).
struct Random {
    uint64_t state;
    uint64_t operator()() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
    uint64_t below(uint64_t count) { return (*this)() % count; }
    bool one_in_256(unsigned times) { return ((*this)() >> 32 & 255) < times; }
};

}  // namespace

// The pins of a port. Without handshake, a core takes a word in every cycle, and a frame is a word.
#ifdef HLSGEN_PLAIN
#define VALID(port) core->port##_valid
#define DATA(port) core->port##_data
#define READY(port) true
#define SET_READY(port, value)
#define SET_LAST(port, value)
#else
#define VALID(port) core->port##_tvalid
#define DATA(port) core->port##_tdata
#define READY(port) core->port##_tready
#define SET_READY(port, value) READY(port) = value;
#define SET_LAST(port, value) core->port##_tlast = value;
#endif

double sc_time_stamp() { return 0; }

extern "C" {

// Memory files are read from the current directory at the first evaluation. Registers without an initial value begin with
// random ones, the same for the same seed, as they may at power-up.
void* core_open(int active_low, int seed) {
    Verilated::randReset(2);
    Verilated::randSeed(1 + seed);
    auto* core = new Vtop;
    core->HLSGEN_RESET = active_low ? 0 : 1;
    core->HLSGEN_CLOCK = 0;
#define START(port, bytes) \
    VALID(port) = 0;       \
    SET_LAST(port, 0)
#define CLOSE(port) SET_READY(port, 0)
    HLSGEN_INPUTS(START)
    HLSGEN_OUTPUTS(CLOSE)
#ifdef HLSGEN_STARTS
    core->HLSGEN_STARTS = 0;
#endif
#ifdef HLSGEN_KEEP
#define KEEP(port, bytes) keep_all(core->port##_tkeep, bytes);
    HLSGEN_INPUTS(KEEP)
#endif
#ifdef HLSGEN_WEIGHTS
    core->s_axil_awvalid = core->s_axil_wvalid = core->s_axil_bready = 0;
    core->s_axil_arvalid = core->s_axil_rready = 0;
#endif
#ifdef HLSGEN_CONTROL
    core->s_axil_ctrl_awvalid = core->s_axil_ctrl_wvalid = core->s_axil_ctrl_bready = 0;
    core->s_axil_ctrl_arvalid = core->s_axil_ctrl_rready = 0;
#endif
    for (int i = 0; i < 6; ++i) {
        core->HLSGEN_CLOCK = 1;
        core->eval();
        core->HLSGEN_CLOCK = 0;
        core->eval();
    }
    core->HLSGEN_RESET = active_low ? 1 : 0;
    for (int i = 0; i < 2; ++i) {
        core->HLSGEN_CLOCK = 1;
        core->eval();
        core->HLSGEN_CLOCK = 0;
        core->eval();
    }
    return core;
}

// Words of an input port and those of an output port, each of so many bytes; `moved`: how many went through it.
struct Sent {
    const uint8_t* words;
    uint64_t count, frame, moved;
    int bytes;
};
struct Taken {
    uint8_t* words;
    uint64_t count, moved;
    int bytes;
};

// Ends when all moved, or if nothing moved for `patience` cycles.
void core_run(void* handle, Sent* in, int inputs, Taken* out, int outputs, uint64_t patience) {
    auto* core = static_cast<Vtop*>(handle);
    uint64_t left = 0, quiet = 0;
    for (int n = 0; n < inputs; ++n) left += in[n].count;
    for (int n = 0; n < outputs; ++n) left += out[n].count;
#define OPEN(port) SET_READY(port, 1)
    HLSGEN_OUTPUTS(OPEN)
    // Also what is dropped behind the last output: the next call begins with a frame.
    while (left && quiet < patience) {
        uint64_t moved = 0;
        Sent* x = in;
        Taken* y = out;
#define OFFER(port, size)                                          \
    {                                                              \
        const bool valid = x->moved < x->count;                    \
        VALID(port) = valid;                                       \
        if (valid) {                                               \
            put(DATA(port), x->words + x->moved * x->bytes, size); \
            SET_LAST(port, (x->moved + 1) % x->frame == 0)         \
        }                                                          \
        ++x;                                                       \
    }
        HLSGEN_INPUTS(OFFER)
        core->eval();
        x = in;
#define COUNT(port, size)                                    \
    {                                                        \
        const bool goes = x->moved < x->count && READY(port); \
        x->moved += goes;                                    \
        moved += goes;                                       \
        ++x;                                                 \
    }
        HLSGEN_INPUTS(COUNT)
#define TAKE(port)                                                     \
    {                                                                  \
        if (VALID(port) && y->moved < y->count) {                      \
            get(DATA(port), y->words + y->moved * y->bytes, y->bytes); \
            ++y->moved;                                                \
            ++moved;                                                   \
        }                                                              \
        ++y;                                                           \
    }
        HLSGEN_OUTPUTS(TAKE)
        core->HLSGEN_CLOCK = 1;
        core->eval();
        core->HLSGEN_CLOCK = 0;
        left -= moved;
        quiet = moved ? 0 : quiet + 1;
    }
#define IDLE(port, bytes) VALID(port) = 0;
    HLSGEN_INPUTS(IDLE)
    HLSGEN_OUTPUTS(CLOSE)
    core->eval();
}

#ifdef HLSGEN_SINGLE
// What core_soak has done, and the first thing that was wrong.
struct Soak {
    uint64_t cycles, sent, taken, resets;
    uint64_t error;        // 0: nothing; the others stand in verilator_library.py
    uint64_t cycle, beat;  // of the error: since the call, and of the output since the first frame of `in`
};

// Random stalls of both ports, and random resets, for so many cycles. The beats of `in` and `out` go in a circle; after
// a reset they begin with any frame. `mask`: the bits of an output beat that count. `settled`: cycles after which a core
// that is left alone has come to rest. `starts`: for each frame, 1 if it starts a sequence; a reset then goes on with such
// a frame, and TUSER is anything where it must not count.
void core_soak(void* handle, int active_low, const uint8_t* in, uint64_t in_beats, int in_bytes, uint64_t in_frame,
               const uint8_t* out, const uint8_t* mask, int out_bytes, uint64_t out_frame, uint64_t settled,
               const uint8_t* starts, uint64_t patience, uint64_t cycles, uint64_t seed, Soak* soak) {
    auto* core = static_cast<Vtop*>(handle);
    Random draw{seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du};
    for (int i = 0; i < 8; ++i) draw();
    const unsigned odds[] = {0, 0, 0, 16, 64, 128, 240, 256};
    const uint64_t frames = in_beats / in_frame, out_beats = frames * out_frame;
    std::vector<uint8_t> data(out_bytes), before(out_bytes);
    *soak = Soak{};
    uint64_t phase = 0, place_in = 0, place_out = 0, quiet = 0;
    int reset = 0, age = 0;  // cycles that the reset still lasts; since it began
    bool offered = false, held = false, held_last = false, first = true;
    unsigned idle = 0, stall = 0;
    for (uint64_t cycle = 0; cycle < cycles && !soak->error; ++cycle) {
        if (phase == 0) {
            phase = 1 + draw.below(draw.below(2) ? 3 * settled : 12);
            idle = odds[draw.below(8)];
            stall = odds[draw.below(8)];
            if (cycle == 0 || draw.below(16) == 0) {
                reset = 2 + static_cast<int>(draw.below(4));
                age = 0;
                uint64_t frame = draw.below(frames);
                while (starts && !starts[frame]) frame = (frame + 1) % frames;
                first = true;
                place_in = frame * in_frame;
                place_out = frame * out_frame;
                offered = held = false;
                ++soak->resets;
            }
        }
        --phase;
        core->HLSGEN_RESET = (reset > 0) != (active_low != 0);
        // What is taken in the first cycle of a reset is lost with the rest.
        if (!offered && age > 0 && !draw.one_in_256(idle)) {
            offered = true;
            put(core->s_axis_tdata, in + place_in * in_bytes, in_bytes);
            core->s_axis_tlast = (place_in + 1) % in_frame == 0;
#ifdef HLSGEN_STARTS
            const bool counts = place_in % in_frame == 0 && !first;
            core->HLSGEN_STARTS = counts ? starts && starts[place_in / in_frame] : draw.below(2);
            first = false;
#endif
        }
        const bool take = !draw.one_in_256(stall);
        core->s_axis_tvalid = offered;
        core->m_axis_tready = take;
        core->eval();
        const bool moved_in = offered && core->s_axis_tready;
        const bool valid = core->m_axis_tvalid && age > 1;
        if (valid) {
            get(core->m_axis_tdata, data.data(), out_bytes);
            const bool last = core->m_axis_tlast;
            if (held && (data != before || last != held_last)) soak->error = 1;
            const uint8_t *wanted = out + place_out * out_bytes, *used = mask + place_out % out_frame * out_bytes;
            for (int i = 0; i < out_bytes; ++i)
                if ((data[i] ^ wanted[i]) & used[i]) soak->error = 3;
            if (last != ((place_out + 1) % out_frame == 0)) soak->error = 4;
            before = data;
            held_last = last;
        } else if (held) {
            soak->error = 2;
        }
        if (age > 1 && core->frame_error) soak->error = 5;
        const bool moved_out = valid && take;
        quiet = (moved_in || moved_out) ? 0 : quiet + (offered && take);
        if (quiet > patience) soak->error = 6;
        if (soak->error) {
            soak->cycle = cycle;
            soak->beat = place_out;
        }
        core->HLSGEN_CLOCK = 1;
        core->eval();
        core->HLSGEN_CLOCK = 0;
        held = valid && !take;
        if (moved_in) {
            offered = false;
            place_in = (place_in + 1) % in_beats;
            ++soak->sent;
        }
        if (moved_out) {
            place_out = (place_out + 1) % out_beats;
            ++soak->taken;
        }
        if (reset > 0) --reset;
        if (age < 2) ++age;
        ++soak->cycles;
    }
    core->HLSGEN_RESET = active_low ? 1 : 0;
    core->s_axis_tvalid = 0;
    core->m_axis_tready = 0;
    core->eval();
}

#endif

#ifdef HLSGEN_WEIGHTS
// Writes over AXI4-Lite, (address, data) each; returns how many were answered with OKAY. With a seed other than 0,
// address, data and the readiness for the response wait for random numbers of cycles.
uint64_t core_write(void* handle, const uint32_t* writes, uint64_t count, uint64_t seed) {
    auto* core = static_cast<Vtop*>(handle);
    Random draw{seed};
    uint64_t good = 0;
    core->s_axil_wstrb = 15;
    for (uint64_t n = 0; n < count; ++n) {
        const int address_at = seed ? draw.below(4) : 0, data_at = seed ? draw.below(4) : 0;
        bool address_left = true, data_left = true;
        core->s_axil_awaddr = writes[2 * n];
        core->s_axil_wdata = writes[2 * n + 1];
        for (int cycle = 0, done = 0; cycle < 100 && !done; ++cycle) {
            core->s_axil_awvalid = address_left && cycle >= address_at;
            core->s_axil_wvalid = data_left && cycle >= data_at;
            core->s_axil_bready = !seed || draw.below(2);
            core->eval();
            if (core->s_axil_awvalid && core->s_axil_awready) address_left = false;
            if (core->s_axil_wvalid && core->s_axil_wready) data_left = false;
            done = core->s_axil_bvalid && core->s_axil_bready;
            good += done && core->s_axil_bresp == 0;
            core->HLSGEN_CLOCK = 1;
            core->eval();
            core->HLSGEN_CLOCK = 0;
        }
    }
    core->s_axil_awvalid = core->s_axil_wvalid = 0;
    core->s_axil_bready = 0;
    core->eval();
    return good;
}
#endif

void core_close(void* handle) { delete static_cast<Vtop*>(handle); }

}
