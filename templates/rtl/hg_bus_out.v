// hg_bus_out: AXI4-Stream output port of a core, on a bus of any width.
//
// Purpose     Packs the core's beats into bus words and generates tlast.
// Parameters  WIDTH    Bits of a beat of the core.
//             TDATA_W  Bits of a word.
//             SLOT     Bits that a beat occupies on the bus: a part of a word (TDATA_W / 2, / 4 ...), one
//                      word, or whole words. The beat is in the low bits of its slot; the other bits are
//                      zero.
//             BEATS    Beats of a frame. Each frame begins a new word.
// Latency     The latency of hg_axis_out. Unless every word is one beat, hg_width precedes it. The first
//             word of a beat then appears in the second cycle after it. A word of several beats appears in
//             the second cycle after its last beat. The rate is one beat and one word per cycle, without
//             gaps.
// Contract    The last word of every frame has tlast = 1. Its slots after the last beat are zero.
`default_nettype none
module hg_bus_out #(
    parameter integer WIDTH   = 12,
    parameter integer TDATA_W = 32,
    parameter integer SLOT    = 16,
    parameter integer BEATS   = 5
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
    localparam integer SLOTS = (SLOT < TDATA_W) ? TDATA_W / SLOT : 1;  // beats of a word
    localparam integer PARTS = (SLOT > TDATA_W) ? SLOT / TDATA_W : 1;  // words of a beat
    localparam integer WORDS = (BEATS + SLOTS - 1) / SLOTS * PARTS;
    localparam integer KEPT  = (PARTS > 1) ? TDATA_W : SLOTS * WIDTH;  // payload bits of a word

    wire [KEPT-1:0] made, word;
    wire            made_valid, made_ready;
    genvar g;
    generate
        if (PARTS > 1) begin : narrower
            wire [SLOT:0] padded = {{SLOT+1-WIDTH{1'b0}}, s_data};
            hg_width #(.UNIT(TDATA_W), .IN(PARTS), .OUT(1)) width (
                .clk(clk), .rst(rst), .s_data(padded[SLOT-1:0]), .s_valid(s_valid), .s_ready(s_ready),
                .m_data(made), .m_valid(made_valid), .m_ready(made_ready)
            );
            wire unused = &{1'b0, padded[SLOT]};
        end else if (SLOTS > 1) begin : wider
            hg_width #(.UNIT(WIDTH), .IN(1), .OUT(SLOTS), .IN_GROUP(BEATS), .OUT_GROUP(BEATS)) width (
                .clk(clk), .rst(rst), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready),
                .m_data(made), .m_valid(made_valid), .m_ready(made_ready)
            );
        end else begin : equal
            assign made       = s_data;
            assign made_valid = s_valid;
            assign s_ready    = made_ready;
        end
    endgenerate

    // The padding of slots is not stored.
    hg_axis_out #(.WIDTH(KEPT), .TDATA_W(KEPT), .BEATS(WORDS)) port (
        .clk(clk), .rst(rst), .s_data(made), .s_valid(made_valid), .s_ready(made_ready),
        .m_axis_tdata(word), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready),
        .m_axis_tlast(m_axis_tlast)
    );
    generate
        if (PARTS > 1) begin : whole_word
            assign m_axis_tdata = word;
        end else begin : slots_of_word
            for (g = 0; g < SLOTS; g = g + 1) begin : slot
                wire [SLOT:0] filled = {{SLOT+1-WIDTH{1'b0}}, word[g*WIDTH +: WIDTH]};
                assign m_axis_tdata[g*SLOT +: SLOT] = filled[SLOT-1:0];
                wire unused = &{1'b0, filled[SLOT]};
            end
        end
    endgenerate
endmodule
`default_nettype wire
