// hg_pair_add: Quantized add of two operands packed in one element.
//
// Purpose     c = quantized sum of a and b in every lane. hg_eltwise_add_fn defines the function.
// Parameters  LANES           Elements of a beat.
//             ZP0, ZP1, ZPO, S0, S1, SO, SH  Constants of the function.
// Latency     7 cycles, one beat per cycle.
// Contract    Exact integers. Operand a is the low byte of an element, b the high byte.
`default_nettype none
module hg_pair_add #(
    parameter integer LANES = 2,
    parameter [15:0]  ZP0   = 16'd3,
    parameter [15:0]  ZP1   = 16'd5,
    parameter [15:0]  ZPO   = 16'd1,
    parameter [15:0]  S0    = 16'd100,
    parameter [15:0]  S1    = 16'd90,
    parameter [7:0]   SO    = 8'd3,
    parameter [7:0]   SH    = 8'd9
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [16*LANES-1:0] s_data,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [8*LANES-1:0]  m_data,
    output wire                m_valid,
    input  wire                m_ready
);
    wire [16*LANES-1:0] apart;
    wire                user;
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            assign apart[8*g +: 8]         = s_data[16*g +: 8];
            assign apart[8*(LANES+g) +: 8] = s_data[16*g + 8 +: 8];
        end
    endgenerate

    hg_eltwise_add #(.LANES(LANES), .USER_W(1)) add (
        .clk(clk), .rst(rst), .s_data(apart), .s_user(1'b0),
        .s_zp0(ZP0), .s_zp1(ZP1), .s_zpo(ZPO), .s_s0(S0), .s_s1(S1), .s_so(SO), .s_shift(SH),
        .s_valid(s_valid), .s_ready(s_ready),
        .m_data(m_data), .m_user(user), .m_valid(m_valid), .m_ready(m_ready)
    );
    wire unused = &{1'b0, user};
endmodule
`default_nettype wire
