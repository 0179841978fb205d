// hg_unfold: Line buffer that emits every window of back-to-back images, one or more per cycle.
//
// Purpose     Input side of layers that process all taps at once. For each window, in raster order, and
//             each f < FOLDS, it emits a beat of KH * KW words. Tap t = kh * KW + kw is at bit t * LANES *
//             UNIT. It is word f of pixel (oy * SH - PT + kh * DH, ox * SW - PL + kw * DW), or PAD outside
//             the image. With WINDOWS > 1, a beat holds the windows ox = WINDOWS * i + n of a row, n <
//             WINDOWS. Tap t of window n is then at bit (t * WINDOWS + n) * LANES * UNIT. Windows with ox
//             >= OUT_W are undefined.
// Parameters  UNIT, LANES     Bits of an element, elements of a word.
//             HEIGHT, WIDTH   Pixels of an image, in raster order. A pixel is FOLDS words.
//             KH, KW, SH, SW, PT, PL  Kernel, stride, padding at top and left.
//             OUT_H, OUT_W    Windows of an image.
//             FOLDS           Words of a pixel.
//             ROWS            KH > 1: stored rows of WIDTH pixels, at least TALL; otherwise 1.
//             COLUMNS         KH > 1: words of a row; otherwise stored words, a multiple of SPAN.
//             PAD             Code of the elements outside.
//             PIXELS          Pixels of a row in an input word, the channels of one after those of the
//                             other. Each row begins a new word.
//             WINDOWS         Windows of a row in a beat. WINDOWS * SW is a multiple of PIXELS.
//             DH, DW          Dilation.
// Latency     A beat is issued in each enabled cycle (m_ready || !m_valid) in which hg_window_flow reports
//             its window complete. It is on m_data 2 enabled cycles after its issue. Words are accepted,
//             enabled or not, according to hg_window_flow with DEPTH = ROWS * COLUMNS * FOLDS.
// Contract    DEPTH must satisfy hg_window_flow (it does if KH > 1). Signal s_ready depends on registers
//             only. FOLDS is 1 if PIXELS or WINDOWS exceeds 1. PIXELS divides WIDTH, or no tap of a window
//             lies beyond the right edge. A beat is assembled from SPAN words of TALL = (KH - 1) * DH + 1
//             rows. SPAN is (KW - 1) * DW + 1 if PIXELS and WINDOWS are 1. There are ROWS * SPAN memories
//             with one write port and one registered read. Row r (counted over all images) is in slot r mod
//             ROWS. Word x of the row (KH = 1: word x of all) is in column bank x mod SPAN. Where a whole
//             slot fits into a LUTRAM, every word of a beat has its own copy instead.
`default_nettype none
module hg_unfold #(
    parameter integer UNIT    = 4,
    parameter integer LANES   = 2,
    parameter integer HEIGHT  = 4,
    parameter integer WIDTH   = 5,
    parameter integer KH      = 3,
    parameter integer KW      = 3,
    parameter integer SH      = 1,
    parameter integer SW      = 1,
    parameter integer PT      = 1,
    parameter integer PL      = 1,
    parameter integer OUT_H   = 4,
    parameter integer OUT_W   = 5,
    parameter integer FOLDS   = 2,
    parameter integer ROWS    = 3,
    parameter integer COLUMNS = 5,
    parameter [UNIT-1:0] PAD  = 0,
    parameter integer PIXELS  = 1,
    parameter integer WINDOWS = 1,
    parameter integer DH      = 1,
    parameter integer DW      = 1
) (
    input  wire                                clk,
    input  wire                                rst,
    input  wire [PIXELS*LANES*UNIT-1:0]        s_data,
    input  wire                                s_valid,
    output wire                                s_ready,
    output wire [KH*KW*WINDOWS*LANES*UNIT-1:0] m_data,
    output wire                                m_valid,
    input  wire                                m_ready
);
    localparam integer ONE  = LANES * UNIT;
    localparam integer WORD = PIXELS * ONE;
    // The same in words: of a row (ACROSS), from one beat to the next (STEP), left of the image (LEFT), of
    // a beat (SPAN); beats of a row (BEATS). Tap 0 of window 0 is pixel SKEW of those words.
    localparam integer ACROSS = (WIDTH + PIXELS - 1) / PIXELS, STEP = WINDOWS * SW / PIXELS;
    localparam integer LEFT = (PL + PIXELS - 1) / PIXELS, SKEW = LEFT * PIXELS - PL;
    localparam integer SPAN = (SKEW + (WINDOWS - 1) * SW + (KW - 1) * DW) / PIXELS + 1;
    localparam integer TALL = (KH - 1) * DH + 1;
    localparam integer BEATS = (OUT_W + WINDOWS - 1) / WINDOWS;
    // Column banks: 1 if copies cost less than rotating columns.
    localparam integer BANKS = (COLUMNS * FOLDS <= ((SPAN < 3) ? 32 : 64)) ? 1 : SPAN;
    localparam integer BANK  = ((COLUMNS + BANKS - 1) / BANKS) * FOLDS;
    localparam integer AW    = (BANK <= 1) ? 1 : $clog2(BANK);
    localparam integer HB    = (ROWS <= 1) ? 1 : $clog2(ROWS);
    localparam integer WB    = (BANKS <= 1) ? 1 : $clog2(BANKS);

    wire [SPAN*AW-1:0] places;
    wire [HB-1:0]      turn_y;
    wire [WB-1:0]      turn_x;
    wire [TALL-1:0]    outside_y;
    wire [SPAN-1:0]    outside_x;
    wire window_end, complete;
    wire en = m_ready || !m_valid, take = s_valid && s_ready, issue = en && complete;
    wire ended = issue && window_end;

    hg_unfold_walk #(
        .HEIGHT(HEIGHT), .WIDTH(ACROSS), .KH(TALL), .KW(SPAN), .SH(SH), .SW(STEP), .PT(PT), .PL(LEFT),
        .OUT_H(OUT_H), .OUT_W(BEATS), .FOLDS(FOLDS), .ROWS(ROWS), .BANKS(BANKS), .BANK(BANK), .ADDR_W(AW),
        .TURN_H(HB), .TURN_W(WB)
    ) walk (
        .clk(clk), .rst(rst), .issue(issue), .places(places),
        .turn_y(turn_y), .turn_x(turn_x), .outside_y(outside_y), .outside_x(outside_x),
        .window_end(window_end)
    );

    hg_window_flow #(
        .HEIGHT(HEIGHT), .WIDTH(ACROSS), .SPAN_Y(TALL - 1), .SPAN_X(SPAN - 1), .SH(SH), .SW(STEP),
        .PT(PT), .PL(LEFT), .OUT_H(OUT_H), .OUT_W(BEATS), .PIXEL(FOLDS),
        .DEPTH(ROWS * COLUMNS * FOLDS)
    ) flow (
        .clk(clk), .rst(rst), .take(take), .began(ended), .ended(ended), .room(s_ready), .complete(complete)
    );

    // Control flags and position of the words that were read.
    reg          next_valid_reg, m_valid_reg;
    reg [HB-1:0] next_y_reg;
    reg [WB-1:0] next_x_reg;
    reg [TALL-1:0] next_outside_y_reg;
    reg [SPAN-1:0] next_outside_x_reg;
    always @(posedge clk) begin
        if (en) begin
            next_valid_reg     <= issue;
            next_y_reg         <= turn_y;
            next_x_reg         <= turn_x;
            next_outside_y_reg <= outside_y;
            next_outside_x_reg <= outside_x;
            m_valid_reg        <= next_valid_reg;
        end
        if (rst) begin
            next_valid_reg <= 1'b0;
            m_valid_reg    <= 1'b0;
        end
    end
    assign m_valid = m_valid_reg;

    wire [ROWS*SPAN*WORD-1:0] stored, level;
    wire [TALL*SPAN*WORD-1:0] window, ready;
    wire unused = &{1'b0, next_x_reg, level, ready};

    hg_unfold_store #(
        .WORD(WORD), .FOLDS(FOLDS), .ROWS(ROWS), .COLUMNS(COLUMNS), .SPAN(SPAN), .BANKS(BANKS),
        .BANK(BANK), .ADDR_W(AW)
    ) store (
        .clk(clk), .rst(rst), .take(take), .s_data(s_data), .en(en), .places(places), .stored(stored)
    );
    hg_rotate #(.N(ROWS), .WIDTH(SPAN*WORD)) down (.turn(next_y_reg), .x(stored), .y(level));

    genvar h, w, n;
    generate
        for (h = 0; h < TALL; h = h + 1) begin : row_out
            for (w = 0; w < SPAN; w = w + 1) begin : word
                reg [WORD-1:0] tap_reg;
                wire outside = next_outside_y_reg[h] || next_outside_x_reg[w];
                always @(posedge clk)
                    if (en) tap_reg <= outside ? {PIXELS*LANES{PAD}} : window[(h*SPAN+w)*WORD +: WORD];
                assign ready[(h*SPAN+w)*WORD +: WORD] = tap_reg;
            end
            if (BANKS == 1) begin : straight
                assign window[h*SPAN*WORD +: SPAN*WORD] = level[h*SPAN*WORD +: SPAN*WORD];
            end else begin : turned
                hg_rotate #(.N(SPAN), .WIDTH(WORD)) across (
                    .turn(next_x_reg), .x(level[h*SPAN*WORD +: SPAN*WORD]),
                    .y(window[h*SPAN*WORD +: SPAN*WORD])
                );
            end
        end
    endgenerate

    // Taps from the pixels of those words.
    generate
        for (h = 0; h < KH; h = h + 1) begin : tap_row
            for (w = 0; w < KW; w = w + 1) begin : tap
                for (n = 0; n < WINDOWS; n = n + 1) begin : window_out
                    assign m_data[((h*KW+w)*WINDOWS+n)*ONE +: ONE]
                        = ready[h*DH*SPAN*WORD + (SKEW+n*SW+w*DW)*ONE +: ONE];
                end
            end
        end
    endgenerate
endmodule
`default_nettype wire
