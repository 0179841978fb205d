// hg_join_sum: Weighted sum of two streams, element by element.
//
// Purpose     m = FA * a + FB * b
// Parameters  LANES          Elements of a beat, of both inputs and the output.
//             A_W, A_SIGNED  Bits of an element of a; 1: two's complement, 0: unsigned.
//             B_W, B_SIGNED  The same for b.
//             OUT_W          Bits of an element of m (two's complement).
//             FA, FB         Factors, at most 32 bits.
// Latency     2 cycles, one beat per cycle. Both beats are consumed in the same cycle. All registers
//             advance in cycles in which the output is free or accepted; otherwise they stall. Signal
//             a_ready depends on b_valid, and b_ready on a_valid.
// Contract    Exact modulo 2^OUT_W. The caller proves that every result fits.
`default_nettype none
module hg_join_sum #(
    parameter integer       LANES    = 2,
    parameter integer       A_W      = 4,
    parameter integer       A_SIGNED = 1,
    parameter integer       B_W      = 5,
    parameter integer       B_SIGNED = 0,
    parameter integer       OUT_W    = 9,
    parameter signed [31:0] FA       = 3,
    parameter signed [31:0] FB       = -5
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*A_W-1:0]   a_data,
    input  wire                   a_valid,
    output wire                   a_ready,
    input  wire [LANES*B_W-1:0]   b_data,
    input  wire                   b_valid,
    output wire                   b_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    // Operands and magnitudes of the factors, in two's complement.
    localparam integer PA_W = (A_SIGNED != 0) ? A_W : A_W + 1;
    localparam integer PB_W = (B_SIGNED != 0) ? B_W : B_W + 1;
    localparam [32:0]  FA_ABS = FA[31] ? -{FA[31], FA} : {FA[31], FA};
    localparam [32:0]  FB_ABS = FB[31] ? -{FB[31], FB} : {FB[31], FB};
    localparam integer FA_W = $clog2({31'd0, FA_ABS} + 64'd1) + 1;
    localparam integer FB_W = $clog2({31'd0, FB_ABS} + 64'd1) + 1;

    reg [1:0] valid_reg;
    wire      en = m_ready || !valid_reg[1];

    assign a_ready = en && b_valid;
    assign b_ready = en && a_valid;
    assign m_valid = valid_reg[1];

    always @(posedge clk) begin
        if (en) valid_reg <= {valid_reg[0], a_valid && b_valid};
        if (rst) valid_reg <= 2'b00;
    end

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [A_W-1:0]         a = a_data[g*A_W +: A_W];
            wire [B_W-1:0]         b = b_data[g*B_W +: B_W];
            wire [PA_W:0]          ax = {{PA_W+1-A_W{(A_SIGNED != 0) && a[A_W-1]}}, a};
            wire [PB_W:0]          bx = {{PB_W+1-B_W{(B_SIGNED != 0) && b[B_W-1]}}, b};
            wire [PA_W+FA_W-1:0]   pa;
            wire [PB_W+FB_W-1:0]   pb;
            hg_multiply #(.X_W(PA_W), .M_W(FA_W), .STYLE(2), .STAGES(1), .M(FA_ABS[FA_W-1:0])) times_a (
                .clk(clk), .en(en), .x(ax[PA_W-1:0]), .m({FA_W{1'b0}}), .y(pa)
            );
            hg_multiply #(.X_W(PB_W), .M_W(FB_W), .STYLE(2), .STAGES(1), .M(FB_ABS[FB_W-1:0])) times_b (
                .clk(clk), .en(en), .x(bx[PB_W-1:0]), .m({FB_W{1'b0}}), .y(pb)
            );
            wire [PA_W+FA_W+OUT_W-1:0] pax = {{OUT_W{pa[PA_W+FA_W-1]}}, pa};
            wire [PB_W+FB_W+OUT_W-1:0] pbx = {{OUT_W{pb[PB_W+FB_W-1]}}, pb};
            reg  [OUT_W-1:0]           sum_reg;
            always @(posedge clk) if (en)
                sum_reg <= (FA[31] && FB[31]) ? -(pax[OUT_W-1:0] + pbx[OUT_W-1:0])
                         : FA[31] ? pbx[OUT_W-1:0] - pax[OUT_W-1:0]
                         : FB[31] ? pax[OUT_W-1:0] - pbx[OUT_W-1:0] : pax[OUT_W-1:0] + pbx[OUT_W-1:0];
            assign m_data[g*OUT_W +: OUT_W] = sum_reg;
            wire unused = &{1'b0, ax, bx, pax, pbx};
        end
    endgenerate
endmodule
`default_nettype wire
