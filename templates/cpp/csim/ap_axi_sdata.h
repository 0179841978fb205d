// Replacement of ap_axi_sdata.h for C simulation without vendor tools. It has only TDATA, TLAST and TUSER, as
// the core needs.
#ifndef HG_CSIM_AP_AXI_SDATA_H
#define HG_CSIM_AP_AXI_SDATA_H

#include <cstddef>
#include <cstdint>

#include "ap_int.h"

#define AXIS_ENABLE_DATA 0b00000001
#define AXIS_ENABLE_LAST 0b00010000
#define AXIS_ENABLE_USER 0b01000000

namespace hls {

template <typename T, std::size_t WUser, std::size_t WId, std::size_t WDest, uint8_t Enable, bool Strict>
struct axis {
    T data;
    ap_uint<1> last;
    ap_uint<WUser> user;
};
template <typename T, std::size_t WId, std::size_t WDest, uint8_t Enable, bool Strict>
struct axis<T, 0, WId, WDest, Enable, Strict> {
    T data;
    ap_uint<1> last;
};

template <typename T, uint8_t Enable = AXIS_ENABLE_DATA | AXIS_ENABLE_LAST>
using axis_data = axis<T, 0, 0, 0, Enable, true>;

}  // namespace hls

#endif
