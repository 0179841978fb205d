// Contracts of single modules, as assertions about their ports. The state is undefined before the first reset.
`default_nettype none

// reset_contract: one cycle later, hg_reset outputs the reset request of its port.
module reset_contract #(
    parameter integer ACTIVE_LOW = 0
) (
    input wire clk,
    input wire reset_in,
    input wire rst
);
    reg begun_reg = 1'b0, asked_reg = 1'b0;
    always @(posedge clk) begin
        begun_reg <= 1'b1;
        asked_reg <= reset_in ^ (ACTIVE_LOW != 0);
    end
    always @* if (begun_reg) follows: assert (rst == asked_reg);
endmodule

// load_contract: hg_load writes the pieces received for it since the last start, in their order.
//
// The solver chooses one piece (`mark`). It is stored on arrival and compared when its word is written.
module load_contract #(
    parameter integer UNIT     = 0,
    parameter integer WORDS    = 4,
    parameter integer WIDTH    = 40,
    parameter integer AW       = 2
) (
    input wire             clk,
    input wire             rst,
    input wire             mark,
    input wire [49:0]      load,
    input wire             we,
    input wire [AW-1:0]    waddr,
    input wire [WIDTH-1:0] wdata
);
    localparam integer PIECES = (WIDTH + 31) / 32;
    localparam integer CW = $clog2(WORDS + 1) + 1, PW = $clog2(PIECES + 1) + 1;

    reg          begun_reg = 1'b0, known_reg = 1'b0, live_reg = 1'b0, due_reg = 1'b0, marked_reg = 1'b0;
    reg [CW-1:0] word_reg = 0, place_reg = 0;       // complete words since the start; the word due next
    reg [PW-1:0] piece_reg = 0, which_reg = 0;      // pieces of the next word; the marked piece
    reg [31:0]   kept_reg = 0;

    wire mine  = load[47:32] == UNIT;
    wire take  = load[49] && mine && live_reg;
    wire last  = piece_reg == PIECES - 1;
    always @(posedge clk) begin
        begun_reg <= 1'b1;
        due_reg   <= take && last;
        place_reg <= word_reg;
        if (take) begin
            piece_reg <= last ? 0 : piece_reg + 1'b1;
            if (last) word_reg <= word_reg + 1'b1;
            if (last && word_reg == WORDS - 1) live_reg <= 1'b0;
            if (mark && !marked_reg) begin
                kept_reg  <= load[31:0];
                which_reg <= piece_reg;
            end
        end
        // The mark of a word is removed when the word is written.
        marked_reg <= (marked_reg && !due_reg) || (take && mark && !marked_reg);
        if (load[48] && mine) begin
            live_reg   <= 1'b1;
            word_reg   <= 0;
            piece_reg  <= 0;
            // A complete word is written nevertheless.
            if (!(take && last)) marked_reg <= 1'b0;
        end
        if (rst) begin
            known_reg  <= 1'b1;
            live_reg   <= 1'b0;
            due_reg    <= 1'b0;
            marked_reg <= 1'b0;
            word_reg   <= 0;
            piece_reg  <= 0;
        end
    end

    wire [32*PIECES-1:0] padded = wdata;
    wire [31:0] found = padded[32*which_reg +: 32];
    wire [31:0] mask  = (which_reg == PIECES - 1 && WIDTH % 32 != 0) ? (32'd1 << (WIDTH % 32)) - 1 : 32'hffffffff;
    always @* begin
        if (!begun_reg) assume (rst);
        if (known_reg) begin
            // A reset cancels a pending write.
            if (1'b1) written: assert (we == (due_reg && !rst));
            if (we) placed: assert (waddr == place_reg);
            if (we && marked_reg) kept: assert (((found ^ kept_reg) & mask) == 0);
        end
    end
endmodule

// join_contract: an output beat of hg_join_sum (MODE 0) or hg_join_product (MODE 1) is the result of its two operands, element by element.
//
// The solver chooses one pair (`mark`). It is stored when accepted and compared when it leaves. stream_contract proves
// for both inputs that no beat is lost or joined with a wrong one.
module join_contract #(
    parameter integer LANES    = 1,
    parameter integer A_W      = 2,
    parameter integer A_SIGNED = 0,
    parameter integer B_W      = 2,
    parameter integer B_SIGNED = 0,
    parameter integer OUT_W    = 6,
    parameter integer MODE     = 0,
    parameter signed [31:0] FA = 1,
    parameter signed [31:0] FB = 1,
    parameter signed [31:0] ZA = 0,
    parameter signed [31:0] ZB = 0
) (
    input wire                   clk,
    input wire                   rst,
    input wire                   mark,
    input wire [LANES*A_W-1:0]   a_data,
    input wire                   a_valid,
    input wire                   a_ready,
    input wire [LANES*B_W-1:0]   b_data,
    input wire                   b_valid,
    input wire                   b_ready,
    input wire [LANES*OUT_W-1:0] m_data,
    input wire                   m_valid,
    input wire                   m_ready
);
    reg       begun_reg = 1'b0, known_reg = 1'b0, marked_reg = 1'b0;
    reg [1:0] ahead_reg = 0, at_reg = 0;        // pairs inside; pairs before the marked one
    reg [LANES*A_W-1:0] a_reg = 0;
    reg [LANES*B_W-1:0] b_reg = 0;

    wire take = a_valid && a_ready, send = m_valid && m_ready;
    wire [1:0] ahead = ahead_reg - {1'b0, send};
    always @(posedge clk) begin
        begun_reg <= 1'b1;
        ahead_reg <= ahead + {1'b0, take};
        if (marked_reg) begin
            at_reg     <= at_reg - {1'b0, send};
            marked_reg <= !(send && at_reg == 0);
        end else if (take && mark) begin
            at_reg     <= ahead;
            marked_reg <= 1'b1;
            a_reg      <= a_data;
            b_reg      <= b_data;
        end
        if (rst) begin
            known_reg  <= 1'b1;
            marked_reg <= 1'b0;
            ahead_reg  <= 0;
        end
    end

    wire [LANES-1:0] equal;
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [A_W-1:0] a = a_reg[g*A_W +: A_W];
            wire [B_W-1:0] b = b_reg[g*B_W +: B_W];
            wire signed [63:0] ax = A_SIGNED ? {{64-A_W{a[A_W-1]}}, a} : {{64-A_W{1'b0}}, a};
            wire signed [63:0] bx = B_SIGNED ? {{64-B_W{b[B_W-1]}}, b} : {{64-B_W{1'b0}}, b};
            wire signed [63:0] value = (MODE == 0) ? FA * ax + FB * bx : (ax - ZA) * (bx - ZB);
            assign equal[g] = m_data[g*OUT_W +: OUT_W] == value[OUT_W-1:0];
        end
    endgenerate
    always @* begin
        if (!begun_reg) assume (rst);
        if (known_reg) begin
            // Both beats of a pair are consumed in one cycle.
            if (!rst) together: assert (take == (b_valid && b_ready));
            if (m_valid && marked_reg && at_reg == 0) result: assert (&equal);
        end
    end
endmodule

// rows_max_contract: hg_rows_max emits the distance of each element to the largest one of its row.
//
// The solver chooses one element (`mark`). It is stored when accepted, and so is the largest element of its row.
module rows_max_contract #(
    parameter integer LANES     = 1,
    parameter integer BEATS     = 2,
    parameter integer IN_W      = 2,
    parameter integer IN_SIGNED = 0
) (
    input wire                  clk,
    input wire                  rst,
    input wire                  mark,
    input wire [LANES*IN_W-1:0] s_data,
    input wire                  s_valid,
    input wire                  s_ready,
    input wire [LANES*IN_W-1:0] m_data,
    input wire                  m_valid,
    input wire                  m_ready
);
    localparam integer W  = $clog2(4 * BEATS + 4) + 1;
    localparam integer BW = $clog2(BEATS + 1);
    // State of the marked element: it is inside, it has left, its row is complete.
    reg                  begun_reg = 1'b0, known_reg = 1'b0, marked_reg = 1'b0, spent_reg = 1'b0, closed_reg = 1'b0;
    reg [W-1:0]          ahead_reg = 0, at_reg = 0;   // beats inside; beats before the marked one
    reg [BW-1:0]         beat_reg = 0;                // of the input row
    reg [LANES*IN_W-1:0] kept_reg = 0;
    reg [IN_W-1:0]       most_reg = 0;                // of the input row, or of the marked row

    function [IN_W-1:0] larger(input [IN_W-1:0] a, input [IN_W-1:0] b);
        larger = ($signed({IN_SIGNED != 0 && a[IN_W-1], a}) > $signed({IN_SIGNED != 0 && b[IN_W-1], b})) ? a : b;
    endfunction

    wire take = s_valid && s_ready, send = m_valid && m_ready;
    wire last = beat_reg == BEATS - 1;
    wire [W-1:0] ahead = ahead_reg - {{W-1{1'b0}}, send};
    reg [IN_W-1:0] most;
    integer k;
    always @* begin
        most = (beat_reg == 0) ? s_data[IN_W-1:0] : most_reg;
        for (k = 0; k < LANES; k = k + 1) most = larger(most, s_data[k*IN_W +: IN_W]);
    end
    always @(posedge clk) begin
        begun_reg <= 1'b1;
        ahead_reg <= ahead + {{W-1{1'b0}}, take};
        if (take) beat_reg <= last ? 0 : beat_reg + 1'b1;
        if (take && !closed_reg) most_reg <= most;
        if (take && last && (marked_reg || (mark && !spent_reg))) closed_reg <= 1'b1;
        if (marked_reg) begin
            at_reg     <= at_reg - {{W-1{1'b0}}, send};
            marked_reg <= !(send && at_reg == 0);
            spent_reg  <= send && at_reg == 0;
        end else if (take && mark && !spent_reg) begin
            at_reg     <= ahead;
            marked_reg <= 1'b1;
            kept_reg   <= s_data;
        end
        if (rst) begin
            known_reg  <= 1'b1;
            marked_reg <= 1'b0;
            spent_reg  <= 1'b0;
            closed_reg <= 1'b0;
            ahead_reg  <= 0;
            beat_reg   <= 0;
        end
    end

    wire [LANES-1:0] equal;
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            assign equal[g] = m_data[g*IN_W +: IN_W] == most_reg - kept_reg[g*IN_W +: IN_W];
        end
    endgenerate
    always @* begin
        if (!begun_reg) assume (rst);
        if (known_reg && m_valid && marked_reg && at_reg == 0) below: assert (closed_reg && (&equal));
    end
endmodule

// scale_contract: hg_norm_scale consumes a beat of b with the last of BEATS beats of a, and emits STAGES cycles later.
module scale_contract #(
    parameter integer BEATS  = 2,
    parameter integer STAGES = 8
) (
    input wire        clk,
    input wire        rst,
    input wire        a_valid,
    input wire        a_ready,
    input wire        b_valid,
    input wire        b_ready,
    input wire [31:0] m_data,
    input wire        m_valid,
    input wire        m_ready
);
    localparam integer BW = $clog2(BEATS + 1);
    reg              begun_reg = 1'b0, known_reg = 1'b0, held_reg = 1'b0;
    reg [STAGES-1:0] way_reg = 0;
    reg [BW-1:0]     beat_reg = 0;
    reg [31:0]       sent_reg = 0;
    wire en   = m_ready || !m_valid;
    wire last = beat_reg == BEATS - 1;
    always @(posedge clk) begin
        begun_reg <= 1'b1;
        if (en) way_reg <= {way_reg[STAGES-2:0], a_valid && a_ready};
        if (a_valid && a_ready) beat_reg <= last ? 0 : beat_reg + 1'b1;
        held_reg <= m_valid && !m_ready && !rst;
        sent_reg <= m_data;
        if (rst) begin
            known_reg <= 1'b1;
            way_reg   <= 0;
            beat_reg  <= 0;
        end
    end
    always @* begin
        if (!begun_reg) assume (rst);
        if (known_reg) begin
            on_time: assert (m_valid == way_reg[STAGES-1]);
            element: assert (a_ready == (en && b_valid));
            row: assert (b_ready == (en && a_valid && last));
            if (held_reg) still: assert (m_data == sent_reg);
        end
    end
endmodule
`default_nettype wire
