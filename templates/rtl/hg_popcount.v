// hg_popcount: Number of positions in which x and w agree (XNOR, then popcount).
//
// Purpose     Multiplying part of one processing element of hg_mvu for binary layers.
// Parameters  SIMD   Bits of x and of w.
//             EVERY  Adder levels per pipeline register (0: none).
// Latency     1 + ceil(log2(SIMD / 4)) / EVERY cycles, both quotients rounded up, all advancing on en.
// Contract    The sum count + one is exact. Three positions form a term of two bits, one six-input LUT
//             each. Input x_again duplicates x from separate registers; otherwise tools share an XNOR
//             between the two bits and use three LUTs. The adder of two terms uses a single position as its
//             carry, which is possible because all its sums occur. The single remaining position, `one`, is
//             for the carry of the user's adder.
`default_nettype none
module hg_popcount #(
    parameter integer SIMD  = 8,
    parameter integer EVERY = 2
) (
    input  wire                                                          clk,
    input  wire                                                          en,
    input  wire [SIMD-1:0]                                               x,
    input  wire [((SIMD < (SIMD+3)/4*3) ? SIMD : (SIMD+3)/4*3)-1:0]      x_again,
    input  wire [SIMD-1:0]                                               w,
    output wire [2+$clog2((SIMD+3)/4)-1:0]                               count,
    output wire                                                          one
);
    localparam integer TERMS  = (SIMD + 3) / 4;
    localparam integer THREES = (SIMD < 3 * TERMS) ? SIMD : 3 * TERMS;  // positions in terms
    localparam integer LEVELS = $clog2(TERMS);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;

    // Agreements only: 3 * TERMS positions in terms, TERMS - 1 carries, and one more.
    wire [4*TERMS:0]   same;  // the highest bit is 0, for SIMD = 4 * TERMS
    wire [4*TERMS-1:0] same_again;
    assign same       = {{4*TERMS+1-SIMD{1'b0}}, ~(x ^ w)};
    assign same_again = {{4*TERMS-THREES{1'b0}}, ~(x_again ^ w[THREES-1:0])};
    reg  [TERMS-1:0]   carry_reg;
    always @(posedge clk) if (en) carry_reg <= same[3*TERMS +: TERMS];

    // Level l holds ceil(TERMS / 2^l) numbers of 2 + l bits.
    genvar l, i;
    generate
        for (l = 0; l <= LEVELS; l = l + 1) begin : level
            localparam integer COUNT = (TERMS + (1 << l) - 1) >> l;
            localparam integer W     = 2 + l;
            wire [COUNT*W-1:0] next, value;
            if (l == 0) begin : threes
                for (i = 0; i < COUNT; i = i + 1) begin : term
                    wire [2:0] a = same[3*i +: 3], b = same_again[3*i +: 3];
                    assign next[2*i +: 2] = {(b[0] & b[1]) | (b[0] & b[2]) | (b[1] & b[2]), ^a};
                end
            end else begin : sums
                localparam integer FROM = (TERMS + (1 << (l - 1)) - 1) >> (l - 1);
                // One carry per adder. Carries of earlier levels are first.
                wire [FROM-COUNT-1:0] carry;
                hg_delay #(.WIDTH(FROM - COUNT), .CYCLES((EVERY == 0) ? 0 : (l - 1) / STEP)) late (
                    .clk(clk), .en(en), .d(carry_reg[TERMS-FROM +: FROM-COUNT]), .q(carry)
                );
                for (i = 0; i < COUNT; i = i + 1) begin : add
                    wire [W-2:0] a = level[l-1].value[2*i*(W-1) +: W-1];
                    if (2*i + 1 < FROM) begin : pair
                        wire [W-2:0] b = level[l-1].value[(2*i+1)*(W-1) +: W-1];
                        // Otherwise tools add several numbers at once, in more LUTs
                        (* keep *) wire [W-1:0] sum;
                        assign sum = {1'b0, a} + {1'b0, b} + {{W-1{1'b0}}, carry[i]};
                        assign next[i*W +: W] = sum;
                    end else begin : single
                        assign next[i*W +: W] = {1'b0, a};
                    end
                end
            end
            if (l == 0 || (EVERY != 0 && (l % STEP == 0 || l == LEVELS))) begin : pipe
                reg [COUNT*W-1:0] value_reg;
                always @(posedge clk) if (en) value_reg <= next;
                assign value = value_reg;
            end else begin : wired
                assign value = next;
            end
        end
    endgenerate

    assign count = level[LEVELS].value;
    hg_delay #(.WIDTH(1), .CYCLES((EVERY == 0) ? 0 : (LEVELS + STEP - 1) / STEP)) left (
        .clk(clk), .en(en), .d(carry_reg[TERMS-1]), .q(one)
    );
    wire unused = &{1'b0, same[4*TERMS], same_again};
endmodule
`default_nettype wire
