// hg_eltwise_add: Quantized add with multipliers and a shift, for a stream of pairs of int8 vectors.
//
// Purpose     c = quantized sum of a and b in every lane. hg_eltwise_add_fn defines the function.
// Parameters  LANES   Pairs of a beat.
//             USER_W  Bits of the sideband that accompanies a beat.
// Latency     7 cycles, one beat per cycle.
// Contract    Exact for all values. Operand a of lane k is byte k of s_data, b is byte LANES + k. The
//             parameters zp0 .. shift belong to the beat. They are sampled with it and may change from beat
//             to beat. If tied to constants, they and the registers that carry them cost nothing.
`default_nettype none
module hg_eltwise_add #(
    parameter integer LANES  = 2,
    parameter integer USER_W = 1
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [16*LANES-1:0] s_data,
    input  wire [USER_W-1:0]   s_user,
    input  wire [15:0]         s_zp0,
    input  wire [15:0]         s_zp1,
    input  wire [15:0]         s_zpo,
    input  wire [15:0]         s_s0,
    input  wire [15:0]         s_s1,
    input  wire [7:0]          s_so,
    input  wire [7:0]          s_shift,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [8*LANES-1:0]  m_data,
    output wire [USER_W-1:0]   m_user,
    output wire                m_valid,
    input  wire                m_ready
);
    reg [6:0] valid_reg;
    wire      en = m_ready || !valid_reg[6];

    assign s_ready = en;
    assign m_valid = valid_reg[6];

    always @(posedge clk) begin
        if (en) valid_reg <= {valid_reg[5:0], s_valid};
        if (rst) valid_reg <= 7'd0;
    end

    // Parameters of later stages travel along, the oldest in the high bits.
    reg [31:0]         scale_reg;
    reg [3*8-1:0]      so_reg;
    reg [4*8-1:0]      shift_reg;
    reg [6*16-1:0]     zpo_reg;
    reg [7*USER_W-1:0] user_reg;
    always @(posedge clk) if (en) begin
        scale_reg <= {s_s1, s_s0};
        so_reg    <= {so_reg[15:0], s_so};
        shift_reg <= {shift_reg[23:0], s_shift};
        zpo_reg   <= {zpo_reg[79:0], s_zpo};
        user_reg  <= {user_reg[6*USER_W-1:0], s_user};
    end
    assign m_user = user_reg[7*USER_W-1 -: USER_W];

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            hg_eltwise_add_fn #(.PIPE(1)) add (
                .clk(clk), .en(en),
                .a(s_data[8*g +: 8]), .b(s_data[8*(LANES+g) +: 8]),
                .zp0(s_zp0), .zp1(s_zp1), .zpo(zpo_reg[95:80]),
                .s0(scale_reg[15:0]), .s1(scale_reg[31:16]), .so(so_reg[23:16]),
                .shift(shift_reg[31:24]), .c(m_data[8*g +: 8])
            );
        end
    endgenerate
endmodule
`default_nettype wire
