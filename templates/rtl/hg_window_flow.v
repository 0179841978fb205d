// hg_window_flow: when hg_window takes a word and when a window is complete.
//
// Purpose     counts words against the newest and the oldest word that the current window needs.
//             With (y0, x0) = (oy * SH - PT, ox * SW - PL), the place of its first tap,
//             newest: last word of pixel (clamp(y0 + SPAN_Y, 0, HEIGHT - 1),
//                     clamp(x0 + SPAN_X, 0, WIDTH - 1));
//             oldest: first word of pixel number
//                     clamp(y0, 0, HEIGHT) * WIDTH + (keep ? clamp(x0, 0, WIDTH) : 0), where
//                     keep = y0 < HEIGHT && (y0 + SH > 0 || oy == OUT_H - 1);
//             both counted from the first word after reset.
// Parameters  HEIGHT, WIDTH, SH, SW, PT, PL, OUT_H, OUT_W, DEPTH  as in hg_window
//             SPAN_Y, SPAN_X   places from the first to the last tap
//             PIXEL            words of a pixel
//             ROW_W, COLUMN_W  bits of a signed row and column
// Latency     room: fewer than DEPTH words from the oldest on were taken (`take`) before this cycle;
//             complete: the newest word was taken before this cycle. `en && advance` goes to the
//             next window at this edge, that of the next row or image if the current one is the last
//             one there (row_end, image_end); row, column: the last tap of the current one.
// Contract    depends on registers only. Needs DEPTH > newest - oldest for every window.
`default_nettype none
module hg_window_flow #(
    parameter integer HEIGHT   = 4,
    parameter integer WIDTH    = 5,
    parameter integer SPAN_Y   = 2,
    parameter integer SPAN_X   = 2,
    parameter integer SH       = 1,
    parameter integer SW       = 1,
    parameter integer PT       = 1,
    parameter integer PL       = 1,
    parameter integer OUT_H    = 4,
    parameter integer OUT_W    = 5,
    parameter integer PIXEL    = 2,
    parameter integer DEPTH    = 26,
    parameter integer ROW_W    = 4,
    parameter integer COLUMN_W = 4
) (
    input  wire                       clk,
    input  wire                       rst,
    input  wire                       take,
    input  wire                       en,
    input  wire                       advance,
    input  wire                       row_end,
    input  wire                       image_end,
    input  wire signed [ROW_W-1:0]    row,
    input  wire signed [COLUMN_W-1:0] column,
    output wire                       room,
    output wire                       complete
);
    localparam integer LINE = WIDTH * PIXEL;

    // Row and column of the newest pixel of the first and last window, of the oldest one of the last.
    localparam integer Y_0 = SPAN_Y - PT;
    localparam integer X_0 = SPAN_X - PL;
    localparam integer Y_L = Y_0 + (OUT_H - 1) * SH;
    localparam integer X_L = X_0 + (OUT_W - 1) * SW;
    localparam integer NY_0 = (Y_0 < 0) ? 0 : (Y_0 < HEIGHT) ? Y_0 : HEIGHT - 1;
    localparam integer NX_0 = (X_0 < 0) ? 0 : (X_0 < WIDTH) ? X_0 : WIDTH - 1;
    localparam integer NY_L = (Y_L < 0) ? 0 : (Y_L < HEIGHT) ? Y_L : HEIGHT - 1;
    localparam integer NX_L = (X_L < 0) ? 0 : (X_L < WIDTH) ? X_L : WIDTH - 1;
    localparam integer OY_L = (Y_L < SPAN_Y) ? 0 : (Y_L - SPAN_Y < HEIGHT) ? Y_L - SPAN_Y : HEIGHT;
    localparam integer OX_L = (X_L < SPAN_X) ? 0 : (X_L - SPAN_X < WIDTH) ? X_L - SPAN_X : WIDTH;
    localparam [0:0]   KEEP_L = Y_L - SPAN_Y < HEIGHT;

    // Words needed by the first and the last window; steps from one image to the next.
    localparam integer NEED_0 = NY_0 * LINE + (NX_0 + 1) * PIXEL;
    localparam integer NEED_I = HEIGHT * LINE + NEED_0 - (NY_L * LINE + (NX_L + 1) * PIXEL);
    localparam integer FREE_I = HEIGHT * LINE - (OY_L * LINE + (KEEP_L ? OX_L * PIXEL : 0));

    // No count moves by more than CHANGE from one window to the next.
    localparam integer RISE   = ((OUT_H == 1) ? 1 : (SH < HEIGHT) ? SH : HEIGHT) * LINE;
    localparam integer CHANGE = (RISE > NEED_I) ? RISE : NEED_I;
    localparam integer CW     = 1 + $clog2(DEPTH + CHANGE + 1);
    localparam integer MINUS_NEED_0 = -NEED_0, MINUS_NEED_I = -NEED_I, MINUS_FREE_I = -FREE_I;
    localparam integer MINUS_DEPTH  = -DEPTH;

    reg  [CW-1:0] have_reg;     // words taken - words up to the newest
    reg  [CW-1:0] over_reg;     // words taken - words before the oldest - DEPTH
    wire [CW-1:0] need_x, need_y, free_x, free_y;
    wire          keep, unused_nx, unused_ny, unused_fx;

    hg_window_step #(
        .FIRST(X_0), .STRIDE(SW), .COUNT(OUT_W), .LIMIT(WIDTH - 1), .UNIT(-PIXEL),
        .POS_W(COLUMN_W), .STEP_W(CW)
    ) newest_x (.p(column), .step(need_x), .moves(unused_nx));
    hg_window_step #(
        .FIRST(Y_0), .STRIDE(SH), .COUNT(OUT_H), .LIMIT(HEIGHT - 1), .UNIT(-LINE),
        .OFFSET((NX_L - NX_0) * PIXEL), .REST((NX_L - NX_0) * PIXEL), .POS_W(ROW_W), .STEP_W(CW)
    ) newest_y (.p(row), .step(need_y), .moves(unused_ny));
    // Positions of the first tap, kept as those of the last one.
    hg_window_step #(
        .FIRST(-PL), .STRIDE(SW), .COUNT(OUT_W), .LIMIT(WIDTH), .UNIT(-PIXEL), .SHIFT(SPAN_X),
        .POS_W(COLUMN_W), .STEP_W(CW)
    ) oldest_x (.p(column), .step(free_x), .moves(unused_fx));
    hg_window_step #(
        .FIRST(-PT), .STRIDE(SH), .COUNT(OUT_H), .LIMIT(HEIGHT), .UNIT(-LINE), .SHIFT(SPAN_Y),
        .OFFSET(OX_L * PIXEL), .POS_W(ROW_W), .STEP_W(CW)
    ) oldest_y (.p(row), .step(free_y), .moves(keep));

    wire          keep_x = keep || (KEEP_L && row == $signed(Y_L[ROW_W-1:0]));
    wire [CW-1:0] need = image_end ? MINUS_NEED_I[CW-1:0] : row_end ? need_y : need_x;
    wire [CW-1:0] free = image_end ? MINUS_FREE_I[CW-1:0] : row_end ? free_y : free_x & {CW{keep_x}};
    // A word that is taken comes in as a carry, out of the lowest bit: one chain of carries. en comes late.
    wire [CW-1:0] less = need & {CW{advance}}, more = free & {CW{advance}};
    wire [CW:0]   have = {have_reg, 1'b1} + {less & {CW{en}}, take};
    wire [CW:0]   over = {over_reg, 1'b1} + {more & {CW{en}}, take};
    always @(posedge clk) begin
        have_reg <= have[CW:1];
        over_reg <= over[CW:1];
        if (rst) begin
            have_reg <= MINUS_NEED_0[CW-1:0];
            over_reg <= MINUS_DEPTH[CW-1:0];
        end
    end
    assign room     = over_reg[CW-1];
    assign complete = !have_reg[CW-1];
    wire unused = &{1'b0, unused_nx, unused_ny, unused_fx, have[0], over[0]};
endmodule
`default_nettype wire
