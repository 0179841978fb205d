// hg_delay: Delays a word.
//
// Purpose     Aligns related values in dot products.
// Parameters  WIDTH   Bits of the word.
//             CYCLES  Delay; 0: none.
// Latency     CYCLES, all advancing on en.
// Contract    q is the d of CYCLES enabled edges before. Tools infer shift registers from three and more
//             registers in series. These cost LUTs and are slow to read. Some registers are therefore
//             marked to be kept. Delays up to five are all registers; of longer ones the last stage is a
//             register.
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
    genvar c;
    generate
        for (c = 0; c < CYCLES; c = c + 1) begin : cycle
            wire [WIDTH-1:0] ahead, held;
            if (c == 0) begin : first
                assign ahead = d;
            end else begin : later
                assign ahead = cycle[c-1].held;
            end
            if ((CYCLES < 6) ? (c % 3 == 0) : (c == CYCLES - 1)) begin : own
                (* shreg_extract = "no" *) reg [WIDTH-1:0] held_reg;
                (* keep *) always @(posedge clk) if (en) held_reg <= ahead;
                assign held = held_reg;
            end else begin : any
                reg [WIDTH-1:0] held_reg;
                always @(posedge clk) if (en) held_reg <= ahead;
                assign held = held_reg;
            end
        end
        if (CYCLES == 0) begin : wired
            assign q = d;
            wire unused = &{1'b0, clk, en};
        end else begin : pipe
            assign q = cycle[CYCLES-1].held;
        end
    endgenerate
endmodule
`default_nettype wire
