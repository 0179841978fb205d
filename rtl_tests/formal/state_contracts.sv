// Contracts of states between frames, as assertions about ports. The state is undefined before the first reset.
`default_nettype none

// state_contract: hg_state. Every frame finds what the frame before left, or the initial state.
module state_contract #(
    parameter integer WIDTH   = 1,
    parameter integer BEATS   = 2,
    parameter [WIDTH-1:0] INITIAL = 0
) (
    input wire             clk,
    input wire             rst,
    input wire             a_data,
    input wire             a_valid,
    input wire             a_ready,
    input wire [WIDTH-1:0] b_data,
    input wire             b_valid,
    input wire             b_ready,
    input wire [WIDTH-1:0] m_data,
    input wire             m_valid,
    input wire             m_ready
);
    localparam integer CW = $clog2(BEATS + 3);
    localparam integer QW = WIDTH * (BEATS + 1);
    reg             begun_reg = 1'b0, known_reg = 1'b0, held_reg = 1'b0, first_reg = 1'b1;
    reg [2:0]       flags_reg = 0;                      // of frames that have not left, the first one in bit 0
    reg [2:0]       frames_reg = 0, place_reg = 0;
    reg [QW-1:0]    left_reg = 0;                       // beats that no frame has emitted, the first one in the low bits
    reg [CW-1:0]    count_reg = 0;
    reg [WIDTH-1:0] sent_reg = 0;
    reg [1:0]       waited_reg = 0;
    wire            send  = m_valid && m_ready;
    wire            last  = send && place_reg == BEATS - 1;
    wire            pop   = send && !first_reg;
    wire            there = frames_reg != 0 && (first_reg || count_reg != 0);
    wire [2:0]      frames = frames_reg - {2'd0, last};
    wire [CW-1:0]   count  = count_reg - {{(CW-1){1'b0}}, pop};
    wire [2:0]      flags  = last ? flags_reg >> 1 : flags_reg;
    wire [QW-1:0]   left   = pop ? left_reg >> WIDTH : left_reg;

    always @(posedge clk) begin
        begun_reg  <= 1'b1;
        held_reg   <= m_valid && !m_ready && !rst;
        sent_reg   <= m_data;
        frames_reg <= frames + {2'd0, a_valid && a_ready};
        count_reg  <= count + {{(CW-1){1'b0}}, b_valid && b_ready};
        flags_reg  <= (a_valid && a_ready) ? (flags & ((1 << frames) - 1)) | ({2'd0, a_data} << frames) : flags;
        left_reg   <= (b_valid && b_ready)
                    ? (left & ((1 << WIDTH * count) - 1)) | ({{(QW-WIDTH){1'b0}}, b_data} << WIDTH * count) : left;
        if (send) place_reg <= last ? 3'd0 : place_reg + 3'd1;
        if (last) first_reg <= 1'b0;
        waited_reg <= (there && !m_valid) ? waited_reg + (waited_reg != 2'd3) : 2'd0;
        if (rst) begin
            known_reg  <= 1'b1;
            frames_reg <= 0;
            count_reg  <= 0;
            place_reg  <= 0;
            first_reg  <= 1'b1;
            waited_reg <= 0;
        end
    end

    always @* begin
        if (!begun_reg) assume (rst);
        if (known_reg) begin
            if (m_valid) invented: assert (there);
            if (m_valid) wrong_state: assert (m_data == ((first_reg || flags_reg[0]) ? INITIAL : left_reg[WIDTH-1:0]));
            if (held_reg) offer_withdrawn: assert (m_valid);
            if (held_reg) offer_moved: assert (m_data == sent_reg);
            if (1'b1) too_many: assert (frames_reg <= 3 && count_reg <= BEATS + 1);
            if (!rst && frames_reg < 2) flag_refused: assert (a_ready);
            if (!rst && count_reg < BEATS) state_refused: assert (b_ready);
            if (1'b1) found_late: assert (waited_reg <= 1);
        end
    end
endmodule

// frame_start_contract: hg_frame_start. The bit of each frame leaves with its first beat.
//
// Contract    The first beat of a frame comes at least a cycle after its first word. At most 8 frames are between.
module frame_start_contract #(
    parameter integer BEATS = 2,
    parameter integer WORDS = 3
) (
    input wire clk,
    input wire rst,
    input wire mark,
    input wire word_valid,
    input wire word_ready,
    input wire fresh,
    input wire begins,
    input wire s_valid,
    input wire s_ready,
    input wire m_data,
    input wire m_valid,
    input wire m_ready
);
    reg       begun_reg = 1'b0, known_reg = 1'b0, marked_reg = 1'b0, kept_reg = 1'b0;
    reg [3:0] frames_reg = 0, before_reg = 0;           // frames between, and those of them before the marked one
    reg [2:0] word_reg = 0, beat_reg = 0;
    wire      word  = word_valid && word_ready;
    wire      enter = word && word_reg == 0;
    wire      take  = s_valid && s_ready;
    wire      leave = take && beat_reg == 0;
    wire      chosen = enter && mark && !marked_reg;

    always @(posedge clk) begin
        begun_reg  <= 1'b1;
        if (word) word_reg <= (word_reg == WORDS - 1) ? 3'd0 : word_reg + 3'd1;
        if (take) beat_reg <= (beat_reg == BEATS - 1) ? 3'd0 : beat_reg + 3'd1;
        frames_reg <= frames_reg + {3'd0, enter} - {3'd0, leave};
        if (chosen) begin
            marked_reg <= 1'b1;
            kept_reg   <= fresh;
            before_reg <= frames_reg - {3'd0, leave};
        end else if (leave) begin
            marked_reg <= marked_reg && before_reg != 0;
            before_reg <= before_reg - 4'd1;
        end
        if (rst) begin
            known_reg  <= 1'b1;
            frames_reg <= 0;
            word_reg   <= 0;
            beat_reg   <= 0;
            marked_reg <= 1'b0;
        end
    end

    always @* begin
        if (!begun_reg) assume (rst);
        if (s_valid && beat_reg == 0) assume (frames_reg != 0);
        if (enter) assume (frames_reg != 8);
        if (known_reg) begin
            if (1'b1) begins_at_a_frame: assert (begins == enter);
            if (1'b1) bit_of_a_frame: assert (m_valid == (s_valid && beat_reg == 0));
            if (1'b1) rest_is_dropped: assert (s_ready == (m_ready || beat_reg != 0));
            if (m_valid && marked_reg && before_reg == 0) bit_changed: assert (m_data == kept_reg);
        end
    end
endmodule
`default_nettype wire
