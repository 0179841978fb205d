// hg_frame_start: A bit for each frame that enters a core: it starts a sequence.
//
// Purpose     Brings a flag from an input port to the states inside (hg_state), in step with the data.
// Parameters  WIDTH  Bits of a beat.
//             BEATS  Beats of a frame.
//             WORDS  Words of a frame at the port.
// Latency     0: for the first beat of a frame, m_valid follows s_valid and s_ready follows m_ready. Any
//             other beat is consumed in the cycle in which it is offered, independent of m_ready.
// Contract    word_* is the handshake of the port. `fresh` counts when the first word of a frame is accepted;
//             `begins` is 1 in this cycle. The beats come from this port, at least a cycle later. At most 8
//             frames may be between: the port, its width converter and a register slice hold fewer.
`default_nettype none
module hg_frame_start #(
    parameter integer WIDTH = 8,
    parameter integer BEATS = 4,
    parameter integer WORDS = 4
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             word_valid,
    input  wire             word_ready,
    input  wire             fresh,
    output wire             begins,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire             m_data,
    output wire             m_valid,
    input  wire             m_ready
);
    localparam integer BW = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam integer WW = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam [BW-1:0] LAST_BEAT = BEATS[BW-1:0] - 1'b1;
    localparam [WW-1:0] LAST_WORD = WORDS[WW-1:0] - 1'b1;

    wire          word = word_valid && word_ready;
    reg  [WW-1:0] word_reg;
    reg  [BW-1:0] beat_reg;
    wire [WW-1:0] word_next;
    wire [BW-1:0] beat_next;
    hg_next #(.W(WW)) words (.at(word_reg), .down(1'b0), .wrap(word_reg == LAST_WORD), .next(word_next));
    hg_next #(.W(BW)) beats (.at(beat_reg), .down(1'b0), .wrap(beat_reg == LAST_BEAT), .next(beat_next));
    always @(posedge clk) begin
        if (word) word_reg <= word_next;
        if (s_valid && s_ready) beat_reg <= beat_next;
        if (rst) begin
            word_reg <= {WW{1'b0}};
            beat_reg <= {BW{1'b0}};
        end
    end
    assign begins = word && word_reg == {WW{1'b0}};

    wire first = beat_reg == {BW{1'b0}};
    wire unused_ready, unused_valid;
    hg_fifo #(.WIDTH(1), .DEPTH(8)) flags (
        .clk(clk), .rst(rst),
        .s_data(fresh), .s_valid(begins), .s_ready(unused_ready),
        .m_data(m_data), .m_valid(unused_valid), .m_ready(first && s_valid && m_ready)
    );
    assign m_valid = s_valid && first;
    assign s_ready = m_ready || !first;

    wire unused = &{1'b0, s_data, unused_ready, unused_valid};
endmodule
`default_nettype wire
