// hg_replay: vector buffer that sends every vector of LENGTH beats REPEAT times.
//
// Purpose     feeds a folded matrix-vector unit: the next vector is stored while the current one
//             is repeated.
// Parameters  WIDTH   bits of a beat
//             LENGTH  beats of a vector
//             REPEAT  how often a vector is sent
// Latency     2 cycles; one beat a cycle, no gap between repetitions or vectors
// Contract    room for two vectors, beats are freed while they are sent for the last time;
//             s_ready and m_* depend on registers only. `last` marks the last beat of a
//             repetition.
`default_nettype none
module hg_replay #(
    parameter integer WIDTH  = 8,
    parameter integer LENGTH = 4,
    parameter integer REPEAT = 2
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [WIDTH-1:0] m_data,
    output wire             m_last,
    output wire             m_valid,
    input  wire             m_ready
);
    localparam integer DEPTH = (REPEAT == 1 && LENGTH > 2) ? 4 : 2 * LENGTH;
    localparam integer AW = $clog2(DEPTH);
    localparam integer CW = $clog2(DEPTH + 1);
    localparam integer LW = (LENGTH <= 1) ? 1 : $clog2(LENGTH);
    localparam integer RW = (REPEAT <= 1) ? 1 : $clog2(REPEAT);
    localparam integer BACK = (REPEAT == 1) ? 0 : LENGTH - 1;
    localparam [AW-1:0] TOP = DEPTH[AW-1:0] - 1'b1;
    localparam [AW-1:0] BACK_A = BACK[AW-1:0];
    localparam [CW-1:0] FULL = DEPTH[CW-1:0];
    localparam [LW-1:0] LAST_BEAT = LENGTH[LW-1:0] - 1'b1;
    localparam [RW-1:0] LAST_PASS = REPEAT[RW-1:0] - 1'b1;

    reg [WIDTH-1:0] mem [0:DEPTH-1];
    reg [WIDTH-1:0] data_reg;
    reg [AW-1:0]    write_reg, read_reg;
    reg [CW-1:0]    fill_reg;     // beats stored and not freed
    reg [CW-1:0]    ahead_reg;    // of these, beats that the reader has not passed yet
    reg [LW-1:0]    beat_reg;
    reg [RW-1:0]    pass_reg;
    reg             valid_reg, last_reg;

    wire advance   = m_ready || !valid_reg;
    wire push      = s_valid && s_ready;
    wire read      = advance && ahead_reg != {CW{1'b0}};
    wire end_beat  = beat_reg == LAST_BEAT;
    wire end_pass  = pass_reg == LAST_PASS;
    wire free      = read && end_pass;
    wire rewind    = read && end_beat && !end_pass;

    assign s_ready = fill_reg != FULL;
    assign m_valid = valid_reg;
    assign m_data  = data_reg;
    assign m_last  = last_reg;

    wire [AW-1:0] read_inc  = (read_reg == TOP) ? {AW{1'b0}} : read_reg + 1'b1;
    wire [AW:0]   back      = {1'b0, read_reg} - {1'b0, BACK_A};
    wire [AW-1:0] read_back = back[AW] ? back[AW-1:0] + DEPTH[AW-1:0] : back[AW-1:0];
    wire [CW-1:0] fill_next = fill_reg + {{(CW-1){1'b0}}, push} - {{(CW-1){1'b0}}, free};

    always @(posedge clk) begin
        if (push) begin
            mem[write_reg] <= s_data;
            write_reg <= (write_reg == TOP) ? {AW{1'b0}} : write_reg + 1'b1;
        end
        if (read) begin
            data_reg <= mem[read_reg];
            last_reg <= end_beat;
            read_reg <= rewind ? read_back : read_inc;
            beat_reg <= end_beat ? {LW{1'b0}} : beat_reg + 1'b1;
            if (end_beat) pass_reg <= end_pass ? {RW{1'b0}} : pass_reg + 1'b1;
        end
        if (advance) valid_reg <= read;
        fill_reg  <= fill_next;
        ahead_reg <= rewind ? fill_next
                            : ahead_reg + {{(CW-1){1'b0}}, push} - {{(CW-1){1'b0}}, read};
        if (rst) begin
            write_reg <= {AW{1'b0}};
            read_reg  <= {AW{1'b0}};
            fill_reg  <= {CW{1'b0}};
            ahead_reg <= {CW{1'b0}};
            beat_reg  <= {LW{1'b0}};
            pass_reg  <= {RW{1'b0}};
            valid_reg <= 1'b0;
        end
    end
endmodule
`default_nettype wire
