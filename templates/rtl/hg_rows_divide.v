// hg_rows_divide: Quotients of LANES numbers by one divisor, rounded down.
//
// Purpose     Division in units on rows.
// Parameters  LANES  Numbers.
//             BITS   Bits of a quotient.
//             DEN_W  Bits of the divisor.
// Latency     BITS cycles with `en`; LANES quotients per cycle.
// Contract    Numbers have BITS + DEN_W bits and are less than den * 2^BITS; den is not 0. Exact.
`default_nettype none
module hg_rows_divide #(
    parameter integer LANES = 2,
    parameter integer BITS  = 8,
    parameter integer DEN_W = 6
) (
    input  wire                          clk,
    input  wire                          en,
    input  wire [LANES*(BITS+DEN_W)-1:0] num,
    input  wire [DEN_W-1:0]              den,
    output wire [LANES*BITS-1:0]         quotient
);
    localparam integer W = BITS + DEN_W;

    // Stage s finds bit BITS - 1 - s. The remainder replaces the number.
    wire [(BITS+1)*LANES*W-1:0]    rest;
    wire [(BITS+1)*LANES*BITS-1:0] found;
    wire [(BITS+1)*DEN_W-1:0]      dens;
    assign rest[LANES*W-1:0]     = num;
    assign found[LANES*BITS-1:0] = {LANES*BITS{1'b0}};
    assign dens[DEN_W-1:0]       = den;
    assign quotient = found[BITS*LANES*BITS +: LANES*BITS];
    genvar s, g;
    generate
        for (s = 0; s < BITS; s = s + 1) begin : stage
            localparam integer AT = BITS - 1 - s;
            wire [DEN_W-1:0] d = dens[s*DEN_W +: DEN_W];
            reg  [DEN_W-1:0] d_reg;
            always @(posedge clk) if (en) d_reg <= d;
            assign dens[(s+1)*DEN_W +: DEN_W] = d_reg;
            for (g = 0; g < LANES; g = g + 1) begin : lane
                wire [W-1:0]     r    = rest[(s*LANES+g)*W +: W];
                wire [DEN_W+1:0] less = {1'b0, r[AT +: DEN_W+1]} - {2'b00, d};
                wire             fits = !less[DEN_W+1];
                wire [DEN_W:0]   top  = fits ? less[DEN_W:0] : r[AT +: DEN_W+1];
                reg  [W-1:0]     r_reg;
                reg  [BITS-1:0]  q_reg;
                always @(posedge clk) if (en) begin
                    r_reg <= r;
                    r_reg[AT +: DEN_W+1] <= top;
                    q_reg <= found[(s*LANES+g)*BITS +: BITS];
                    q_reg[AT] <= fits;
                end
                assign rest[((s+1)*LANES+g)*W +: W] = r_reg;
                assign found[((s+1)*LANES+g)*BITS +: BITS] = q_reg;
            end
        end
    endgenerate
    wire unused = &{1'b0, rest[BITS*LANES*W +: LANES*W], dens[BITS*DEN_W +: DEN_W]};
endmodule
`default_nettype wire
