// hg_axis_out: AXI4-Stream output port of a core.
//
// Purpose     Pads to whole bytes, registers the stream and generates tlast.
// Parameters  WIDTH    Payload bits of a beat, the low bits of tdata. The padding is zero.
//             TDATA_W  Bits of tdata: WIDTH rounded up to whole bytes.
//             BEATS    Beats of a frame.
//             CUT      1: a skid buffer; s_ready comes from a register. 0: one register and no
//                      multiplexers; s_ready depends on m_axis_tready. Use 0 for cores whose input port
//                      breaks that path.
// Latency     1 cycle, full throughput.
// Contract    The last beat of every frame has tlast = 1.
`default_nettype none
module hg_axis_out #(
    parameter integer WIDTH   = 12,
    parameter integer TDATA_W = 16,
    parameter integer BEATS   = 4,
    parameter integer CUT     = 1
) (
    input  wire               clk,
    input  wire               rst,
    input  wire [WIDTH-1:0]   s_data,
    input  wire               s_valid,
    output wire               s_ready,
    output wire [TDATA_W-1:0] m_axis_tdata,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);
    localparam integer BW = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam [BW-1:0] LAST = BEATS[BW-1:0] - 1'b1;

    reg  [BW-1:0]      beat_reg;
    wire               last = beat_reg == LAST;
    wire [TDATA_W:0]   padded = {{TDATA_W+1-WIDTH{1'b0}}, s_data};
    wire [TDATA_W:0]   word = {last, padded[TDATA_W-1:0]};

    wire [BW-1:0] beat_next;
    hg_next #(.W(BW)) beats (.at(beat_reg), .down(1'b0), .wrap(last), .next(beat_next));

    always @(posedge clk) begin
        if (s_valid && s_ready) beat_reg <= beat_next;
        if (rst) beat_reg <= {BW{1'b0}};
    end

    generate
        if (CUT != 0) begin : two
            hg_slice #(.WIDTH(TDATA_W + 1)) slice (
                .clk(clk), .rst(rst), .s_data(word), .s_valid(s_valid), .s_ready(s_ready),
                .m_data({m_axis_tlast, m_axis_tdata}), .m_valid(m_axis_tvalid), .m_ready(m_axis_tready)
            );
        end else begin : one
            reg [TDATA_W:0] word_reg;
            reg             valid_reg;
            assign s_ready       = m_axis_tready || !valid_reg;
            assign m_axis_tvalid = valid_reg;
            assign {m_axis_tlast, m_axis_tdata} = word_reg;
            always @(posedge clk) begin
                if (s_ready) word_reg  <= word;
                if (s_ready) valid_reg <= s_valid;
                if (rst) valid_reg <= 1'b0;
            end
        end
    endgenerate

    wire unused = &{1'b0, padded[TDATA_W]};
endmodule
`default_nettype wire
