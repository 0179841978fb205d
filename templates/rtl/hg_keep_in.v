// hg_keep_in: Checks tkeep at the input port of a core.
//
// Purpose     Detects words in which a payload byte is not kept.
// Parameters  BYTES  Bytes of a word.
//             LAST   Payload bytes of the last word of a frame, the low ones. All other words are full.
// Latency     frame_error in the cycle after the word.
// Contract    Observes the port and changes nothing there. The last word is the one with tlast; a wrong
//             tlast is an error anyhow. The register frame_error is set, until reset, when error_in is set
//             or a word with too few bytes is accepted. Bytes beyond the payload may be kept.
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
