// Drives a verilated core at full rate from a C array: beats in, beats out.
#include <cstdint>
#include <cstring>
#include <memory>

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

}  // namespace

double sc_time_stamp() { return 0; }

extern "C" {

// Memory files are read from the current directory at the first evaluation.
void* core_open(int active_low) {
    auto* core = new Vtop;
    core->HLSGEN_RESET = active_low ? 0 : 1;
    core->clk = 0;
    core->s_axis_tvalid = 0;
    core->s_axis_tlast = 0;
    core->m_axis_tready = 0;
    for (int i = 0; i < 6; ++i) {
        core->clk = 1;
        core->eval();
        core->clk = 0;
        core->eval();
    }
    core->HLSGEN_RESET = active_low ? 1 : 0;
    for (int i = 0; i < 2; ++i) {
        core->clk = 1;
        core->eval();
        core->clk = 0;
        core->eval();
    }
    return core;
}

// Returns the number of output beats taken; fewer than wanted if nothing moved for `patience` cycles.
uint64_t core_run(void* handle, const uint8_t* in, uint64_t in_beats, int in_bytes, uint64_t in_frame, uint8_t* out,
                  uint64_t out_beats, int out_bytes, uint64_t patience) {
    auto* core = static_cast<Vtop*>(handle);
    uint64_t sent = 0, got = 0, quiet = 0;
    core->m_axis_tready = 1;
    // Also what is dropped behind the last output: the next call begins with a frame.
    while ((got < out_beats || sent < in_beats) && quiet < patience) {
        const bool valid = sent < in_beats;
        core->s_axis_tvalid = valid;
        if (valid) {
            put(core->s_axis_tdata, in + sent * in_bytes, in_bytes);
            core->s_axis_tlast = (sent + 1) % in_frame == 0;
        }
        core->eval();
        const bool moved_in = valid && core->s_axis_tready;
        const bool moved_out = core->m_axis_tvalid && got < out_beats;
        if (moved_out) get(core->m_axis_tdata, out + got * out_bytes, out_bytes);
        core->clk = 1;
        core->eval();
        core->clk = 0;
        sent += moved_in;
        got += moved_out;
        quiet = (moved_in || moved_out) ? 0 : quiet + 1;
    }
    core->s_axis_tvalid = 0;
    core->m_axis_tready = 0;
    core->eval();
    return got;
}

#ifdef HLSGEN_WEIGHTS
// Writes over AXI4-Lite, (address, data) each; returns how many were answered with OKAY.
uint64_t core_write(void* handle, const uint32_t* writes, uint64_t count) {
    auto* core = static_cast<Vtop*>(handle);
    uint64_t good = 0;
    core->s_axil_bready = 1;
    core->s_axil_wstrb = 15;
    for (uint64_t n = 0; n < count; ++n) {
        core->s_axil_awaddr = writes[2 * n];
        core->s_axil_wdata = writes[2 * n + 1];
        core->s_axil_awvalid = core->s_axil_wvalid = 1;
        for (int cycle = 0, done = 0; cycle < 100 && !done; ++cycle) {
            core->eval();
            const bool address = core->s_axil_awvalid && core->s_axil_awready;
            const bool data = core->s_axil_wvalid && core->s_axil_wready;
            done = core->s_axil_bvalid;
            good += done && core->s_axil_bresp == 0;
            core->clk = 1;
            core->eval();
            core->clk = 0;
            if (address) core->s_axil_awvalid = 0;
            if (data) core->s_axil_wvalid = 0;
        }
    }
    core->s_axil_bready = 0;
    core->eval();
    return good;
}
#endif

void core_close(void* handle) { delete static_cast<Vtop*>(handle); }

}
