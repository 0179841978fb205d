// hg_bus_in: AXI4-Stream input port of a core, on a bus of any width.
//
// Purpose     Unpacks the core's beats from the bus words and checks tlast.
// Parameters  WIDTH    Bits of a beat of the core.
//             TDATA_W  Bits of a word.
//             SLOT     Bits that a beat occupies on the bus: a part of a word (TDATA_W / 2, / 4 ...), one
//                      word, or whole words. The beat is in the low bits of its slot; the other bits are
//                      ignored.
//             BEATS    Beats of a frame. Each frame begins a new word.
// Latency     The latency of hg_axis_in. Unless every word is one beat, hg_width follows it. A beat of
//             several words then appears in the second cycle after its last word. The first beat of a word
//             appears in the second cycle after that word. The rate is one beat and one word per cycle,
//             without gaps.
// Contract    Words are counted; tlast is not needed. When an accepted word's tlast does not match the
//             count, frame_error is set until reset. During reset tready is low.
`default_nettype none
module hg_bus_in #(
    parameter integer WIDTH   = 12,
    parameter integer TDATA_W = 32,
    parameter integer SLOT    = 16,
    parameter integer BEATS   = 5
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
    localparam integer SLOTS = (SLOT < TDATA_W) ? TDATA_W / SLOT : 1;  // beats of a word
    localparam integer PARTS = (SLOT > TDATA_W) ? SLOT / TDATA_W : 1;  // words of a beat
    localparam integer WORDS = (BEATS + SLOTS - 1) / SLOTS * PARTS;
    localparam integer KEPT  = (PARTS > 1) ? TDATA_W : SLOTS * WIDTH;  // payload bits of a word

    // The padding of slots is not stored.
    wire [KEPT-1:0] word, taken;
    wire            taken_valid, taken_ready;
    genvar g;
    generate
        if (PARTS > 1) begin : whole_word
            assign word = s_axis_tdata;
        end else begin : slots_of_word
            for (g = 0; g < SLOTS; g = g + 1) begin : slot
                assign word[g*WIDTH +: WIDTH] = s_axis_tdata[g*SLOT +: WIDTH];
            end
        end
    endgenerate

    hg_axis_in #(.WIDTH(KEPT), .TDATA_W(KEPT), .BEATS(WORDS)) port (
        .clk(clk), .rst(rst),
        .s_axis_tdata(word), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
        .s_axis_tlast(s_axis_tlast),
        .m_data(taken), .m_valid(taken_valid), .m_ready(taken_ready),
        .frame_error(frame_error)
    );

    generate
        if (PARTS > 1) begin : wider
            wire [SLOT-1:0] beat;
            hg_width #(.UNIT(TDATA_W), .IN(1), .OUT(PARTS)) width (
                .clk(clk), .rst(rst), .s_data(taken), .s_valid(taken_valid), .s_ready(taken_ready),
                .m_data(beat), .m_valid(m_valid), .m_ready(m_ready)
            );
            assign m_data = beat[WIDTH-1:0];
            wire unused = &{1'b0, beat};
        end else if (SLOTS > 1) begin : narrower
            hg_width #(.UNIT(WIDTH), .IN(SLOTS), .OUT(1), .IN_GROUP(BEATS), .OUT_GROUP(BEATS)) width (
                .clk(clk), .rst(rst), .s_data(taken), .s_valid(taken_valid), .s_ready(taken_ready),
                .m_data(m_data), .m_valid(m_valid), .m_ready(m_ready)
            );
        end else begin : equal
            assign m_data      = taken;
            assign m_valid     = taken_valid;
            assign taken_ready = m_ready;
        end
    endgenerate

    wire unused = &{1'b0, s_axis_tdata};
endmodule
`default_nettype wire
