// hg_axis_in: AXI4-Stream input port of a core.
//
// Purpose     Drops the byte padding, registers the stream and checks tlast.
// Parameters  WIDTH    Payload bits of a beat, the low bits of tdata.
//             TDATA_W  Bits of tdata: WIDTH rounded up to whole bytes.
//             BEATS    Beats of a frame.
//             CUT      0: one register, for cores with registers between m_axis_tready and m_ready. 1: two
//                      beats in a small memory (hg_fifo) break the ready path here.
// Latency     1 cycle, full throughput. In the same cycle tready depends on rst, and without CUT also on
//             m_ready.
// Contract    Beats are counted; tlast is not needed. When an accepted beat's tlast does not match the
//             count, frame_error is set until reset. During reset tready is low. A beat offered during
//             reset waits and is the first one after it.
`default_nettype none
module hg_axis_in #(
    parameter integer WIDTH   = 12,
    parameter integer TDATA_W = 16,
    parameter integer BEATS   = 4,
    parameter integer CUT     = 0
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

    // Check the beat after it was accepted, so that this logic does not load the port.
    reg  tlast_reg;
    wire ready, seen, done;
    generate
        if (CUT != 0) begin : two
            hg_fifo #(.WIDTH(WIDTH), .DEPTH(2)) beats (
                .clk(clk), .rst(rst),
                .s_data(s_axis_tdata[WIDTH-1:0]), .s_valid(s_axis_tvalid), .s_ready(ready),
                .m_data(m_data), .m_valid(m_valid), .m_ready(m_ready)
            );
            reg seen_reg;
            assign seen = seen_reg;
            assign done = seen_reg;
            always @(posedge clk) seen_reg <= s_axis_tvalid && s_axis_tready;
        end else begin : one
            // One register and no multiplexer: a wide port costs only flip-flops.
            reg [WIDTH-1:0] data_reg;
            reg             valid_reg;
            assign seen    = valid_reg;
            assign done    = valid_reg && m_ready;
            assign ready   = m_ready || !valid_reg;
            assign m_data  = data_reg;
            assign m_valid = valid_reg;
            always @(posedge clk) begin
                if (ready) data_reg  <= s_axis_tdata[WIDTH-1:0];
                if (ready) valid_reg <= s_axis_tvalid;
                if (rst) valid_reg <= 1'b0;
            end
        end
    endgenerate
    assign s_axis_tready = ready && !rst;

    reg [BW-1:0] beat_reg;
    reg          error_reg;
    wire         last  = beat_reg == LAST;
    wire         wrong = seen && tlast_reg != last;

    assign frame_error = error_reg || wrong;

    wire [BW-1:0] beat_next;
    hg_next #(.W(BW)) beats (.at(beat_reg), .down(1'b0), .wrap(last), .next(beat_next));

    always @(posedge clk) begin
        if (ready) tlast_reg <= s_axis_tlast;
        if (done) beat_reg <= beat_next;
        if (wrong) error_reg <= 1'b1;
        if (rst) begin
            beat_reg  <= {BW{1'b0}};
            error_reg <= 1'b0;
        end
    end

    wire unused = &{1'b0, s_axis_tdata};
endmodule
`default_nettype wire
