// hg_keep_in: checks tkeep at the input port of a core.
//
// Purpose     finds words of which a byte that counts is not kept.
// Parameters  BYTES  bytes of a word
//             LAST   those of the last word of a frame that count, the low ones; of all others all do
// Latency     frame_error in the cycle after the word
// Contract    watches the port, and changes nothing there. The last word is the one with tlast: one that
//             is wrong is an error anyhow. frame_error is set, until reset, when error_in is or when a
//             word with too few bytes is accepted; bytes more than those that count may be kept.
`default_nettype none
module hg_keep_in #(
    parameter integer BYTES = 4,
    parameter integer LAST  = 2
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [BYTES-1:0] tkeep,
    input  wire             tvalid,
    input  wire             tready,
    input  wire             tlast,
    input  wire             error_in,
    output wire             frame_error
);
    localparam [BYTES-1:0] ALL = {BYTES{1'b1}}, SOME = ALL >> (BYTES - LAST);

    reg error_reg;
    assign frame_error = error_in || error_reg;

    always @(posedge clk) begin
        if (tvalid && tready && ((tlast ? SOME : ALL) & ~tkeep) != {BYTES{1'b0}}) error_reg <= 1'b1;
        if (rst) error_reg <= 1'b0;
    end
endmodule
`default_nettype wire
