// hg_join_product: Product of two streams, element by element.
//
// Purpose     m = (a - ZA) * (b - ZB)
// Parameters  LANES          Elements of a beat, of both inputs and the output.
//             A_W, A_SIGNED  Bits of an element of a; 1: two's complement, 0: unsigned.
//             B_W, B_SIGNED  The same for b.
//             OUT_W          Bits of an element of m (two's complement).
//             ZA, ZB         Zero points.
//             STYLE          Multiplier. 0: a DSP block; 1: rows of adders, see hg_multiply.
// Latency     2 cycles, one beat per cycle. Both beats are consumed in the same cycle. All registers
//             advance in cycles in which the output is free or accepted; otherwise they stall. Signal
//             a_ready depends on b_valid, and b_ready on a_valid.
// Contract    Exact modulo 2^OUT_W. The caller proves that every result fits.
`default_nettype none
module hg_join_product #(
    parameter integer       LANES    = 2,
    parameter integer       A_W      = 4,
    parameter integer       A_SIGNED = 1,
    parameter integer       B_W      = 5,
    parameter integer       B_SIGNED = 0,
    parameter integer       OUT_W    = 9,
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
            wire [A_W-1:0]           a = a_data[g*A_W +: A_W];
            wire [B_W-1:0]           b = b_data[g*B_W +: B_W];
            wire [DA_W:0]            ax = {{DA_W+1-A_W{(A_SIGNED != 0) && a[A_W-1]}}, a};
            wire [DB_W:0]            bx = {{DB_W+1-B_W{(B_SIGNED != 0) && b[B_W-1]}}, b};
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
            assign m_data[g*OUT_W +: OUT_W] = px[OUT_W-1:0];
            wire unused = &{1'b0, ax, bx, px};
        end
    endgenerate
endmodule
`default_nettype wire
