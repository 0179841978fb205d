// hg_join: Two streams to one, element by element.
//
// Purpose     Combines one element of each stream.
//             MODE 0: m = FA * a + FB * b
//             MODE 1: m = (a - ZA) * (b - ZB)
//             MODE 2: m = {b, a}, a in the low bits; OUT_W = A_W + B_W
// Parameters  LANES          Elements of a beat, of both inputs and the output.
//             A_W, A_SIGNED  Bits of an element of a; 1: two's complement, 0: unsigned.
//             B_W, B_SIGNED  The same for b.
//             OUT_W          Bits of an element of m (two's complement).
//             MODE           See above.
//             FA, FB         Factors of MODE 0, at most 32 bits.
//             ZA, ZB         Zero points of MODE 1.
//             STYLE          Multiplier of MODE 1. 0: a DSP block; 1: rows of adders, see hg_multiply.
// Latency     2 cycles, one beat per cycle. Both beats are consumed in the same cycle. All registers
//             advance in cycles in which the output is free or accepted; otherwise they stall. Signal
//             a_ready depends on b_valid, and b_ready on a_valid.
// Contract    Exact modulo 2^OUT_W. The caller proves that every result fits.
`default_nettype none
module hg_join #(
    parameter integer       LANES    = 2,
    parameter integer       A_W      = 4,
    parameter integer       A_SIGNED = 1,
    parameter integer       B_W      = 5,
    parameter integer       B_SIGNED = 0,
    parameter integer       OUT_W    = 9,
    parameter integer       MODE     = 0,
    parameter signed [31:0] FA       = 3,
    parameter signed [31:0] FB       = -5,
    parameter signed [31:0] ZA       = 1,
    parameter signed [31:0] ZB       = 7,
    parameter integer       STYLE    = 0
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
    // Bits of x - zero for any x of that type.
    function integer bits_less(input integer width, input integer is_signed, input signed [63:0] zero);
        reg signed [63:0] low, high, one;
        begin
            one = 1;
            low = -zero;
            high = (one <<< width) - one - zero;
            if (is_signed != 0) begin
                low = -(one <<< (width - 1)) - zero;
                high = (one <<< (width - 1)) - one - zero;
            end
            bits_less = 1;
            while (low < -(one <<< (bits_less - 1)) || high >= (one <<< (bits_less - 1)))
                bits_less = bits_less + 1;
        end
    endfunction

    localparam signed [63:0] ZA_S = {{32{ZA[31]}}, ZA};
    localparam signed [63:0] ZB_S = {{32{ZB[31]}}, ZB};
    localparam integer DA_W = bits_less(A_W, A_SIGNED, ZA_S);
    localparam integer DB_W = bits_less(B_W, B_SIGNED, ZB_S);
    localparam integer PA_W = bits_less(A_W, A_SIGNED, 64'sd0);
    localparam integer PB_W = bits_less(B_W, B_SIGNED, 64'sd0);
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
            wire [A_W-1:0] a = a_data[g*A_W +: A_W];
            wire [B_W-1:0] b = b_data[g*B_W +: B_W];
            wire           a_sign = (A_SIGNED != 0) && a[A_W-1];
            wire           b_sign = (B_SIGNED != 0) && b[B_W-1];
            wire [OUT_W-1:0] out;
            assign m_data[g*OUT_W +: OUT_W] = out;

            if (MODE == 0) begin : sum
                wire [PA_W:0]          ax = {{PA_W+1-A_W{a_sign}}, a};
                wire [PB_W:0]          bx = {{PB_W+1-B_W{b_sign}}, b};
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
                assign out = sum_reg;
                wire unused_sum = &{1'b0, ax, bx, pax, pbx};
            end else if (MODE == 1) begin : product
                wire [DA_W:0]            ax = {{DA_W+1-A_W{a_sign}}, a};
                wire [DB_W:0]            bx = {{DB_W+1-B_W{b_sign}}, b};
                reg  [DA_W-1:0]          da_reg;
                reg  [DB_W-1:0]          db_reg;
                wire [DA_W+DB_W-1:0]     p;
                wire [DA_W+DB_W+OUT_W:0] px = {{OUT_W+1{p[DA_W+DB_W-1]}}, p};
                always @(posedge clk) if (en) begin
                    da_reg <= ax[DA_W-1:0] - ZA_S[DA_W-1:0];
                    db_reg <= bx[DB_W-1:0] - ZB_S[DB_W-1:0];
                end
                hg_multiply #(.X_W(DA_W), .M_W(DB_W), .STYLE(STYLE), .STAGES(1)) times (
                    .clk(clk), .en(en), .x(da_reg), .m(db_reg), .y(p)
                );
                assign out = px[OUT_W-1:0];
                wire unused_product = &{1'b0, ax, bx, px};
            end else begin : pair
                reg [OUT_W-1:0] first_reg, second_reg;
                always @(posedge clk) if (en) begin
                    first_reg  <= {b, a};
                    second_reg <= first_reg;
                end
                assign out = second_reg;
                wire unused_pair = &{1'b0, a_sign, b_sign};
            end
        end
    endgenerate
endmodule
`default_nettype wire
