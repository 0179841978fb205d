// AXI4-Stream words for analysis alone.
#ifndef HG_IR_AP_AXI_SDATA_H
#define HG_IR_AP_AXI_SDATA_H

#include "ap_int.h"

#define AXIS_ENABLE_DATA 0b00000001
#define AXIS_ENABLE_LAST 0b00010000

namespace hls {

template <typename T, unsigned char Enable = AXIS_ENABLE_DATA | AXIS_ENABLE_LAST>
struct axis_data {
    T data;
    ap_uint<1> last;
};

}  // namespace hls

#endif
