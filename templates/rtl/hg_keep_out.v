// hg_keep_out: tkeep of the output port of a core.
//
// Purpose     Marks the payload bytes of a word.
// Parameters  BYTES  Bytes of a word.
//             LAST   Payload bytes of the last word of a frame, the low ones. All other words are full.
// Latency     0.
// Contract    Depends on tlast only.
`default_nettype none
module hg_keep_out #(
    parameter integer BYTES = 4,
    parameter integer LAST  = 2
) (
    input  wire             tlast,
    output wire [BYTES-1:0] tkeep
);
    localparam [BYTES-1:0] ALL = {BYTES{1'b1}};
    assign tkeep = tlast ? ALL >> (BYTES - LAST) : ALL;
endmodule
`default_nettype wire
