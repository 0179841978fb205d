// hg_axis_in: AXI4-Stream input port of a core.
//
// Purpose     drops the byte padding, registers the stream, checks tlast.
// Parameters  WIDTH   payload bits of a beat, the low bits of tdata
//             TDATA_W bits of tdata, WIDTH rounded up to whole bytes
//             BEATS   beats of a frame
// Latency     1 cycle, full throughput; tready depends on m_ready and rst of the same cycle
// Contract    beats are counted, tlast is not needed; frame_error is set, until reset, when a
//             beat is accepted whose tlast does not match the count. tready is low during reset:
//             a beat that is offered then waits, and is the first one after it.
`default_nettype none
module hg_axis_in #(
    parameter integer WIDTH   = 12,
    parameter integer TDATA_W = 16,
    parameter integer BEATS   = 4
) (
    input  wire               clk,
    input  wire               rst,
    input  wire [TDATA_W-1:0] s_axis_tdata,
    input  wire               s_axis_tvalid,
    output wire               s_axis_tready,
    input  wire               s_axis_tlast,
    output wire [WIDTH-1:0]   m_data,
    output wire               m_valid,
    input  wire               m_ready,
    output wire               frame_error
);
    localparam integer BW = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam [BW-1:0] LAST = BEATS[BW-1:0] - 1'b1;

    // One register and no multiplexer: a wide port costs flip-flops only.
    reg [WIDTH-1:0] data_reg;
    reg             valid_reg, tlast_reg;
    wire            en = m_ready || !valid_reg;

    // The beat in the register is counted and compared: nothing of that depends on the port.
    reg [BW-1:0] beat_reg;
    reg          error_reg;
    wire         last  = beat_reg == LAST;
    wire         wrong = valid_reg && tlast_reg != last;

    assign frame_error = error_reg || wrong;

    always @(posedge clk) begin
        if (en) tlast_reg <= s_axis_tlast;
        if (valid_reg && m_ready) beat_reg <= last ? {BW{1'b0}} : beat_reg + 1'b1;
        if (wrong) error_reg <= 1'b1;
        if (rst) begin
            beat_reg  <= {BW{1'b0}};
            error_reg <= 1'b0;
        end
    end

    assign s_axis_tready = en && !rst;
    assign m_data        = data_reg;
    assign m_valid       = valid_reg;

    always @(posedge clk) begin
        if (en) data_reg  <= s_axis_tdata[WIDTH-1:0];
        if (en) valid_reg <= s_axis_tvalid;
        if (rst) valid_reg <= 1'b0;
    end

    wire unused = &{1'b0, s_axis_tdata};
endmodule
`default_nettype wire
