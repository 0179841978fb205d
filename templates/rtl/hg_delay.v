// hg_delay: a word some cycles later.
//
// Purpose     lets what belongs together meet, in dot products.
// Parameters  WIDTH   bits
//             CYCLES  0: at once
// Latency     CYCLES, all advancing on en
// Contract    q is d of CYCLES enabled edges before.
`default_nettype none
module hg_delay #(
    parameter integer WIDTH  = 8,
    parameter integer CYCLES = 1
) (
    input  wire             clk,
    input  wire             en,
    input  wire [WIDTH-1:0] d,
    output wire [WIDTH-1:0] q
);
    generate
        if (CYCLES == 0) begin : wired
            assign q = d;
            wire unused = &{1'b0, clk, en};
        end else begin : pipe
            reg  [CYCLES*WIDTH-1:0]     late_reg;
            wire [(CYCLES+1)*WIDTH-1:0] words = {late_reg, d};
            always @(posedge clk) if (en) late_reg <= words[CYCLES*WIDTH-1:0];
            assign q = words[CYCLES*WIDTH +: WIDTH];
        end
    endgenerate
endmodule
`default_nettype wire
