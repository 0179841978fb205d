// hg_axis_in: AXI4-Stream input port of a core.
//
// Purpose     drops the byte padding, registers the stream, checks tlast.
// Parameters  WIDTH   payload bits of a beat, the low bits of tdata
//             TDATA_W bits of tdata, WIDTH rounded up to whole bytes
//             BEATS   beats of a frame
// Latency     1 cycle, full throughput
// Contract    beats are counted, tlast is not needed; frame_error is set, until reset, when a
//             beat is accepted whose tlast does not match the count.
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

    reg [BW-1:0] beat_reg;
    reg          error_reg;
    wire         last = beat_reg == LAST;

    assign frame_error = error_reg;

    always @(posedge clk) begin
        if (s_axis_tvalid && s_axis_tready) begin
            beat_reg <= last ? {BW{1'b0}} : beat_reg + 1'b1;
            if (s_axis_tlast != last) error_reg <= 1'b1;
        end
        if (rst) begin
            beat_reg  <= {BW{1'b0}};
            error_reg <= 1'b0;
        end
    end

    hg_slice #(.WIDTH(WIDTH)) slice (
        .clk(clk), .rst(rst),
        .s_data(s_axis_tdata[WIDTH-1:0]), .s_valid(s_axis_tvalid), .s_ready(s_axis_tready),
        .m_data(m_data), .m_valid(m_valid), .m_ready(m_ready)
    );

    wire unused = &{1'b0, s_axis_tdata};
endmodule
`default_nettype wire
