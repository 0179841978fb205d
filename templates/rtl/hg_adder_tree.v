// hg_adder_tree: Sum of N equally wide numbers, pipelined.
//
// Purpose     Reduction inside dot products and popcounts.
// Parameters  N       Number of terms.
//             IN_W    Bits of a term.
//             SIGNED  1: terms are two's complement; 0: unsigned.
//             EVERY   Adder levels per pipeline register (0: combinational).
//             CLOSED  1: the remaining levels after the last full group also end in a register.
// Latency     EVERY ? ceil(log2(N)) / EVERY, rounded down (CLOSED: up) : 0 cycles. All registers advance on
//             en.
// Contract    Exact: the sum has IN_W + ceil(log2(N)) bits.
`default_nettype none
module hg_adder_tree #(
    parameter integer N      = 5,
    parameter integer IN_W   = 4,
    parameter integer SIGNED = 1,
    parameter integer EVERY  = 2,
    parameter integer CLOSED = 0
) (
    input  wire                       clk,
    input  wire                       en,
    input  wire [N*IN_W-1:0]          terms,
    output wire [IN_W+$clog2(N)-1:0]  sum
);
    localparam integer LEVELS = $clog2(N);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;

    // Level l holds ceil(N / 2^l) numbers of IN_W + l bits.
    genvar l, i;
    generate
        for (l = 0; l <= LEVELS; l = l + 1) begin : level
            localparam integer COUNT = (N + (1 << l) - 1) >> l;
            localparam integer W     = IN_W + l;
            wire [COUNT*W-1:0] value;
            if (l == 0) begin : leaves
                assign value = terms;
            end else begin : sums
                localparam integer FROM = (N + (1 << (l - 1)) - 1) >> (l - 1);
                localparam integer LAST  = (CLOSED != 0 && l == LEVELS) ? 1 : 0;
                localparam integer PIPED = (EVERY != 0 && (l % STEP == 0 || LAST != 0)) ? 1 : 0;
                for (i = 0; i < COUNT; i = i + 1) begin : add
                    wire [W-2:0] a = level[l-1].value[2*i*(W-1) +: W-1];
                    if (2*i + 1 == FROM) begin : single
                        // Avoid a shift register between levels: its output is too slow to feed an
                        // addition.
                        wire [W-2:0] late;
                        hg_delay #(.WIDTH(W-1), .CYCLES(PIPED)) pipe (.clk(clk), .en(en), .d(a), .q(late));
                        assign value[i*W +: W] = {(SIGNED != 0) && late[W-2], late};
                    end else begin : pair
                        wire [W-2:0] b = level[l-1].value[(2*i+1)*(W-1) +: W-1];
                        wire [W-1:0] both = {(SIGNED != 0) && a[W-2], a} + {(SIGNED != 0) && b[W-2], b};
                        if (PIPED != 0) begin : pipe
                            reg [W-1:0] both_reg;
                            always @(posedge clk) if (en) both_reg <= both;
                            assign value[i*W +: W] = both_reg;
                        end else begin : wired
                            assign value[i*W +: W] = both;
                        end
                    end
                end
            end
        end
    endgenerate

    assign sum = level[LEVELS].value;

    wire unused = &{1'b0, clk, en};
endmodule
`default_nettype wire
