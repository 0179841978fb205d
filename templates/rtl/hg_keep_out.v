// hg_keep_out: tkeep of the output port of a core.
//
// Purpose     says which bytes of a word count.
// Parameters  BYTES  bytes of a word
//             LAST   those of the last word of a frame that count, the low ones; of all others all do
// Latency     0
// Contract    depends on tlast only.
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
