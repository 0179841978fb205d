// hg_eltwise_add_axi: Quantized add of two int8 AXI4-Streams into a third.
//
// Purpose     Wraps hg_eltwise_add in AXI4-Stream ports, with constant or register parameters.
// Parameters  LANES         Elements, hence bytes, of a beat.
//             REGISTERS     1: the parameters are AXI4-Lite registers; 0: constants, and the port is
//                           inactive.
//             ZP0 .. SHIFT  The constants, or the values after reset.
// Latency     9 cycles, one beat per cycle.
// Contract    The k-th beats of both inputs are added, independent of their relative timing. A frame of one
//             or more beats ends with tlast. Ports tlast and tkeep of s0 accompany their beat to the
//             output. If the tlast or tkeep of two paired beats differ, frame_error is set until reset.
//             Registers, byte addresses (hg_axil_regs defines the accesses):
//               0x00  zp0 [15:0], zp1 [31:16]                     int16, int16
//               0x04  s0 [15:0], s1 [31:16]                       uint16, uint16
//               0x08  zpo [15:0], so [23:16], shift [31:24]       int16, uint8, int8
//               0x0C  hold [0]
//               0x10  frame_error [0], inside a frame [1]         read only
//             A frame uses the register values at the time when its first two beats meet, for all of
//             its beats. A write during a frame takes effect in the next frame. A write takes effect
//             for every frame whose first beat is sent after its response. While hold is 1, frames
//             continue with the last sampled values. To change several registers at once between
//             back-to-back frames: set hold, write, clear hold.
//             All ready outputs are low during reset. A request offered during reset waits and is the
//             first beat or access after it. No output depends combinationally on an input other than rst.
`default_nettype none
module hg_eltwise_add_axi #(
    parameter integer LANES     = 2,
    parameter integer REGISTERS = 1,
    parameter [15:0]  ZP0       = 16'd0,
    parameter [15:0]  ZP1       = 16'd0,
    parameter [15:0]  ZPO       = 16'd0,
    parameter [15:0]  S0        = 16'd1,
    parameter [15:0]  S1        = 16'd1,
    parameter [7:0]   SO        = 8'd1,
    parameter [7:0]   SHIFT     = 8'd0
) (
    input  wire               clk,
    input  wire               rst,
    input  wire [8*LANES-1:0] s0_axis_tdata,
    input  wire [LANES-1:0]   s0_axis_tkeep,
    input  wire               s0_axis_tlast,
    input  wire               s0_axis_tvalid,
    output wire               s0_axis_tready,
    input  wire [8*LANES-1:0] s1_axis_tdata,
    input  wire [LANES-1:0]   s1_axis_tkeep,
    input  wire               s1_axis_tlast,
    input  wire               s1_axis_tvalid,
    output wire               s1_axis_tready,
    output wire [8*LANES-1:0] m_axis_tdata,
    output wire [LANES-1:0]   m_axis_tkeep,
    output wire               m_axis_tlast,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               frame_error,
    input  wire [4:0]         s_axil_awaddr,
    input  wire               s_axil_awvalid,
    output wire               s_axil_awready,
    input  wire [31:0]        s_axil_wdata,
    input  wire [3:0]         s_axil_wstrb,
    input  wire               s_axil_wvalid,
    output wire               s_axil_wready,
    output wire [1:0]         s_axil_bresp,
    output wire               s_axil_bvalid,
    input  wire               s_axil_bready,
    input  wire [4:0]         s_axil_araddr,
    input  wire               s_axil_arvalid,
    output wire               s_axil_arready,
    output wire [31:0]        s_axil_rdata,
    output wire [1:0]         s_axil_rresp,
    output wire               s_axil_rvalid,
    input  wire               s_axil_rready
);
    localparam integer USER_W = LANES + 1;
    localparam integer BEAT_W = 8*LANES + USER_W;
    localparam [95:0] CONSTANTS = {SHIFT, SO, ZPO, S1, S0, ZP1, ZP0};

    // The two inputs, each registered. A pair leaves when both are present.
    wire [BEAT_W-1:0] beat0, beat1;
    wire valid0, valid1, ready, ready0, ready1;
    assign s0_axis_tready = ready0 && !rst;
    assign s1_axis_tready = ready1 && !rst;
    wire pair = valid0 && valid1;
    wire take = pair && ready;
    hg_slice #(.WIDTH(BEAT_W)) slice0 (
        .clk(clk), .rst(rst),
        .s_data({s0_axis_tlast, s0_axis_tkeep, s0_axis_tdata}),
        .s_valid(s0_axis_tvalid), .s_ready(ready0),
        .m_data(beat0), .m_valid(valid0), .m_ready(take)
    );
    hg_slice #(.WIDTH(BEAT_W)) slice1 (
        .clk(clk), .rst(rst),
        .s_data({s1_axis_tlast, s1_axis_tkeep, s1_axis_tdata}),
        .s_valid(s1_axis_tvalid), .s_ready(ready1),
        .m_data(beat1), .m_valid(valid1), .m_ready(take)
    );
    wire [USER_W-1:0] user0 = beat0[8*LANES +: USER_W];
    wire [USER_W-1:0] user1 = beat1[8*LANES +: USER_W];

    // first: the next pair begins a frame.
    reg  first_reg, error_reg;
    wire first_next = take ? user0[LANES] : first_reg;
    assign frame_error = error_reg;
    always @(posedge clk) begin
        first_reg <= first_next;
        if (take && user0 != user1) error_reg <= 1'b1;
        if (rst) begin
            first_reg <= 1'b1;
            error_reg <= 1'b0;
        end
    end

    wire [95:0] used;
    generate
        if (REGISTERS != 0) begin : g_registers
            wire [127:0] values;
            wire         hold = values[96];
            reg  [95:0]  used_reg;
            always @(posedge clk) if (first_next && !hold) used_reg <= values[95:0];
            assign used = used_reg;
            hg_axil_regs #(
                .WORDS(4), .STATUS(1), .ADDR_W(5),
                .RESET({32'd0, CONSTANTS}), .MASK({31'd0, {97{1'b1}}})
            ) registers (
                .clk(clk), .rst(rst), .cleared(128'd0),
                .s_axil_awaddr(s_axil_awaddr),
                .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
                .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb),
                .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready),
                .s_axil_bresp(s_axil_bresp),
                .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready),
                .s_axil_araddr(s_axil_araddr),
                .s_axil_arvalid(s_axil_arvalid), .s_axil_arready(s_axil_arready),
                .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
                .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),
                .values(values), .status({30'd0, !first_reg, error_reg})
            );
            wire reserved_unused = &{1'b0, values[127:97]};
        end else begin : g_constants
            assign used = CONSTANTS;
            assign {s_axil_awready, s_axil_wready, s_axil_bresp, s_axil_bvalid} = 5'd0;
            assign {s_axil_arready, s_axil_rdata, s_axil_rresp, s_axil_rvalid} = 36'd0;
            wire port_unused = &{1'b0, s_axil_awaddr, s_axil_awvalid, s_axil_wdata, s_axil_wstrb,
                                 s_axil_wvalid, s_axil_bready, s_axil_araddr, s_axil_arvalid, s_axil_rready};
        end
    endgenerate

    wire [8*LANES-1:0] sum_data;
    wire [USER_W-1:0]  sum_user;
    wire sum_valid, sum_ready;
    hg_eltwise_add #(.LANES(LANES), .USER_W(USER_W)) add (
        .clk(clk), .rst(rst),
        .s_data({beat1[8*LANES-1:0], beat0[8*LANES-1:0]}), .s_user(user0),
        .s_zp0(used[15:0]), .s_zp1(used[31:16]), .s_s0(used[47:32]), .s_s1(used[63:48]),
        .s_zpo(used[79:64]), .s_so(used[87:80]), .s_shift(used[95:88]),
        .s_valid(pair), .s_ready(ready),
        .m_data(sum_data), .m_user(sum_user), .m_valid(sum_valid), .m_ready(sum_ready)
    );
    hg_slice #(.WIDTH(BEAT_W)) slice_out (
        .clk(clk), .rst(rst), .s_data({sum_user, sum_data}), .s_valid(sum_valid), .s_ready(sum_ready),
        .m_data({m_axis_tlast, m_axis_tkeep, m_axis_tdata}),
        .m_valid(m_axis_tvalid), .m_ready(m_axis_tready)
    );
endmodule
`default_nettype wire
