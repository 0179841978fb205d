// hg_window_flow: Decides when hg_window accepts a word and when a window is complete.
//
// Purpose     Counts words relative to the newest and the oldest word that the current window needs. With
//             (y0, x0) = (oy * SH - PT, ox * SW - PL), the position of its first tap:
//             newest: last word of pixel (clamp(y0 + SPAN_Y, 0, HEIGHT - 1),
//                     clamp(x0 + SPAN_X, 0, WIDTH - 1));
//             oldest: first word of pixel number
//                     clamp(y0, 0, HEIGHT) * WIDTH + (keep ? clamp(x0, 0, WIDTH) : 0), where
//                     keep = y0 < HEIGHT && (y0 + SH > 0 || oy == OUT_H - 1).
//             Both are counted from the first word after reset.
// Parameters  HEIGHT, WIDTH, SH, SW, PT, PL, OUT_H, OUT_W, DEPTH: As in hg_window.
//             SPAN_Y, SPAN_X  Positions from the first to the last tap.
//             PIXEL           Words of a pixel.
//             LATE            As in hg_window_count.
// Latency     Output room: before this cycle, fewer than DEPTH words from the oldest on were accepted
//             (`take`). Output complete: the newest word was accepted before this cycle. After the edge
//             with `ended` = 1, room describes the next window. After the edge with `began` = 1, complete
//             describes the next window.
// Contract    Depends on registers only. Needs DEPTH > newest - oldest for every window. `began` precedes
//             or accompanies `ended` of the same window.
`default_nettype none
module hg_window_flow #(
    parameter integer HEIGHT = 4,
    parameter integer WIDTH  = 5,
    parameter integer SPAN_Y = 2,
    parameter integer SPAN_X = 2,
    parameter integer SH     = 1,
    parameter integer SW     = 1,
    parameter integer PT     = 1,
    parameter integer PL     = 1,
    parameter integer OUT_H  = 4,
    parameter integer OUT_W  = 5,
    parameter integer PIXEL  = 2,
    parameter integer DEPTH  = 26,
    parameter integer LATE   = 0
) (
    input  wire clk,
    input  wire rst,
    input  wire take,
    input  wire began,
    input  wire ended,
    output wire room,
    output wire complete
);
    localparam integer LINE = WIDTH * PIXEL, IMAGE = HEIGHT * LINE;
    localparam integer OY_L = OUT_H - 1, OX_L = OUT_W - 1;

    function integer clamp(input integer v, input integer limit);
        clamp = (v < 0) ? 0 : (v < limit) ? v : limit;
    endfunction
    // Words before the newest and the oldest one of a window, counted in its image.
    function integer newest(input integer oy, input integer ox);
        newest = clamp(oy * SH - PT + SPAN_Y, HEIGHT - 1) * LINE
               + clamp(ox * SW - PL + SPAN_X, WIDTH - 1) * PIXEL + PIXEL - 1;
    endfunction
    function integer keeps(input integer oy);
        keeps = (oy * SH < HEIGHT + PT && (oy * SH + SH > PT || oy == OY_L)) ? 1 : 0;
    endfunction
    function integer oldest(input integer oy, input integer ox);
        oldest = clamp(oy * SH - PT, HEIGHT) * LINE + keeps(oy) * clamp(ox * SW - PL, WIDTH) * PIXEL;
    endfunction

    // Words of the first window. Further words from the last window of an image to the first of the next
    // one, and from the first window to the second.
    localparam integer NEED_0 = newest(0, 0) + 1;
    localparam integer NEED_I = IMAGE + newest(0, 0) - newest(OY_L, OX_L);
    localparam integer FREE_I = IMAGE - oldest(OY_L, OX_L);
    localparam integer OY_1 = (OUT_W == 1 && OUT_H > 1) ? 1 : 0, OX_1 = (OUT_W > 1) ? 1 : 0;
    localparam integer NEED_1 = (OY_1 + OX_1 == 0) ? NEED_I : newest(OY_1, OX_1) - newest(0, 0);
    localparam integer FREE_1 = (OY_1 + OX_1 == 0) ? FREE_I : oldest(OY_1, OX_1) - oldest(0, 0);
    // From a row of windows to the next, back to its first column.
    localparam integer BACK_NEWEST = newest(0, OX_L) - newest(0, 0);
    localparam integer BACK_OLDEST = clamp(OX_L * SW - PL, WIDTH) * PIXEL;

    localparam [0:0]   KEEP_L = OY_L * SH - PT < HEIGHT;

    // No count moves by more than CHANGE from one window to the next.
    localparam integer RISE   = ((OUT_H == 1) ? 1 : (SH < HEIGHT) ? SH : HEIGHT) * LINE;
    localparam integer CHANGE = (RISE > NEED_I) ? RISE : NEED_I;
    localparam integer CW     = 1 + $clog2(DEPTH + CHANGE + 1);
    localparam integer MINUS_NEED_0 = -NEED_0, MINUS_NEED_I = -NEED_I, MINUS_FREE_I = -FREE_I;
    localparam integer MINUS_NEED_1 = -NEED_1, MINUS_FREE_1 = -FREE_1, MINUS_DEPTH = -DEPTH;

    // The window after the current one.
    localparam integer XW = (OUT_W == 1) ? 1 : $clog2(OUT_W);
    localparam integer YW = (OUT_H == 1) ? 1 : $clog2(OUT_H);
    reg  [XW-1:0] ox_reg;
    reg  [YW-1:0] oy_reg;
    wire [XW-1:0] ox_next;
    wire [YW-1:0] oy_next;
    wire row_end   = ox_reg == OX_L[XW-1:0];
    wire last_row  = oy_reg == OY_L[YW-1:0];
    wire image_end = row_end && last_row;
    hg_next #(.W(XW)) columns (.at(ox_reg), .down(1'b0), .wrap(row_end), .next(ox_next));
    hg_next #(.W(YW)) rows (.at(oy_reg), .down(1'b0), .wrap(last_row), .next(oy_next));

    // Its steps to the following window: additional words needed, and words freed.
    wire [CW-1:0] need_x, need_y, free_x, free_y;
    wire          keep, unused_nx, unused_ny, unused_fx;
    hg_window_step #(
        .FIRST(SPAN_X - PL), .STRIDE(SW), .COUNT(OUT_W), .LIMIT(WIDTH - 1), .UNIT(-PIXEL),
        .INDEX_W(XW), .STEP_W(CW)
    ) newest_x (.n(ox_reg), .step(need_x), .moves(unused_nx));
    hg_window_step #(
        .FIRST(SPAN_Y - PT), .STRIDE(SH), .COUNT(OUT_H), .LIMIT(HEIGHT - 1), .UNIT(-LINE),
        .OFFSET(BACK_NEWEST), .REST(BACK_NEWEST), .INDEX_W(YW), .STEP_W(CW)
    ) newest_y (.n(oy_reg), .step(need_y), .moves(unused_ny));
    hg_window_step #(
        .FIRST(-PL), .STRIDE(SW), .COUNT(OUT_W), .LIMIT(WIDTH), .UNIT(-PIXEL),
        .INDEX_W(XW), .STEP_W(CW)
    ) oldest_x (.n(ox_reg), .step(free_x), .moves(unused_fx));
    hg_window_step #(
        .FIRST(-PT), .STRIDE(SH), .COUNT(OUT_H), .LIMIT(HEIGHT), .UNIT(-LINE), .OFFSET(BACK_OLDEST),
        .INDEX_W(YW), .STEP_W(CW)
    ) oldest_y (.n(oy_reg), .step(free_y), .moves(keep));
    wire          keep_x = keep || (last_row && KEEP_L);
    wire [CW-1:0] need = image_end ? MINUS_NEED_I[CW-1:0] : row_end ? need_y : need_x;
    wire [CW-1:0] free = image_end ? MINUS_FREE_I[CW-1:0] : row_end ? free_y : free_x & {CW{keep_x}};

    // Counts, and steps from the current window to the next.
    wire [CW-1:0] have;     // words accepted - words up to the newest
    wire [CW-1:0] over;     // words accepted - words before the oldest - DEPTH
    reg  [CW-1:0] need_reg, free_reg;
    hg_window_count #(.W(CW), .FROM(MINUS_NEED_0[CW-1:0]), .LATE(LATE)) have_count (
        .clk(clk), .rst(rst), .take(take), .go(began), .step(need_reg), .count(have)
    );
    hg_window_count #(.W(CW), .FROM(MINUS_DEPTH[CW-1:0]), .LATE(LATE)) over_count (
        .clk(clk), .rst(rst), .take(take), .go(ended), .step(free_reg), .count(over)
    );
    always @(posedge clk) begin
        if (ended) begin
            need_reg <= need;
            free_reg <= free;
            ox_reg   <= ox_next;
            if (row_end) oy_reg <= oy_next;
        end
        if (rst) begin
            need_reg <= MINUS_NEED_1[CW-1:0];
            free_reg <= MINUS_FREE_1[CW-1:0];
            ox_reg   <= OX_1[XW-1:0];
            oy_reg   <= OY_1[YW-1:0];
        end
    end
    assign room     = over[CW-1];
    assign complete = !have[CW-1];
    wire unused = &{1'b0, unused_nx, unused_ny, unused_fx, have, over};
endmodule
`default_nettype wire
