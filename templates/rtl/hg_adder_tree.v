// hg_adder_tree: sum of N equally wide numbers, pipelined.
//
// Purpose     the reduction inside dot products and popcounts.
// Parameters  N       number of terms
//             IN_W    bits of a term
//             SIGNED  1: terms are two's complement, 0: unsigned
//             EVERY   a register after so many adder levels (0: combinational)
// Latency     EVERY ? ceil(log2(N)) / EVERY, rounded down : 0 cycles, all advancing on en
// Contract    exact: the sum has IN_W + ceil(log2(N)) bits.
`default_nettype none
module hg_adder_tree #(
    parameter integer N      = 5,
    parameter integer IN_W   = 4,
    parameter integer SIGNED = 1,
    parameter integer EVERY  = 2
) (
    input  wire                       clk,
    input  wire                       en,
    input  wire [N*IN_W-1:0]          terms,
    output wire [IN_W+$clog2(N)-1:0]  sum
);
    localparam integer LEVELS = $clog2(N);
    localparam integer OUT_W  = IN_W + LEVELS;

    // All levels use full-width terms; synthesis removes the copies of the sign.
    genvar l;
    generate
        for (l = 0; l <= LEVELS; l = l + 1) begin : level
            localparam integer COUNT = (N + (1 << l) - 1) >> l;
            wire [COUNT*OUT_W-1:0] value;
        end
        for (l = 0; l < LEVELS; l = l + 1) begin : add
            localparam integer FROM = (N + (1 << l) - 1) >> l;
            localparam integer TO   = (N + (2 << l) - 1) >> (l + 1);
            reg [TO*OUT_W-1:0] next;
            integer i;
            always @* begin
                next = {TO*OUT_W{1'b0}};
                for (i = 0; i < TO; i = i + 1)
                    if (2*i + 1 < FROM)
                        next[i*OUT_W +: OUT_W] = level[l].value[(2*i)*OUT_W +: OUT_W]
                                               + level[l].value[((2*i + 1) % FROM)*OUT_W +: OUT_W];
                    else
                        next[i*OUT_W +: OUT_W] = level[l].value[(2*i)*OUT_W +: OUT_W];
            end
            if (EVERY != 0 && ((l + 1) % ((EVERY == 0) ? 1 : EVERY)) == 0) begin : pipe
                reg [TO*OUT_W-1:0] value_reg;
                always @(posedge clk) if (en) value_reg <= next;
                assign level[l+1].value = value_reg;
            end else begin : wired
                assign level[l+1].value = next;
            end
        end
    endgenerate

    reg [N*OUT_W-1:0] extended;
    integer t;
    always @* begin
        for (t = 0; t < N; t = t + 1) begin
            extended[t*OUT_W +: OUT_W] = {OUT_W{(SIGNED != 0) && terms[t*IN_W + IN_W - 1]}};
            extended[t*OUT_W +: IN_W]  = terms[t*IN_W +: IN_W];
        end
    end
    assign level[0].value = extended;
    assign sum = level[LEVELS].value;

    wire unused = &{1'b0, clk, en};
endmodule
`default_nettype wire
