// hg_unfold_walk: Windows that hg_unfold issues: their place in the banks, and the taps outside the image.
//
// Purpose     Counts folds, windows, rows of windows and images.
// Parameters  HEIGHT to FOLDS  As in hg_unfold.
//             ROWS            As in hg_unfold.
//             BANKS           Column banks: KW, or 1 if every tap has a copy of all columns.
//             BANK            Words of a bank.
//             ADDR_W          Bits of an address in a bank.
//             TURN_H, TURN_W  Bits of a row slot and of a column bank.
// Latency     The outputs describe the beat that `issue` issues at this edge; the next beat follows.
// Contract    Output places: the addresses of the KW column banks, or of the copies for taps kw = 0, 1, ...
//             Row slot turn_y and column bank turn_x hold tap 0. Outputs outside_y, outside_x: tap kh, kw
//             is outside the image. Output window_end: last beat of a window. Uses only counters, and sums
//             with constants.
`default_nettype none
module hg_unfold_walk #(
    parameter integer HEIGHT   = 4,
    parameter integer WIDTH    = 5,
    parameter integer KH       = 3,
    parameter integer KW       = 3,
    parameter integer SH       = 1,
    parameter integer SW       = 1,
    parameter integer PT       = 1,
    parameter integer PL       = 1,
    parameter integer OUT_H    = 4,
    parameter integer OUT_W    = 5,
    parameter integer FOLDS    = 2,
    parameter integer ROWS     = 3,
    parameter integer BANKS    = 3,
    parameter integer BANK     = 4,
    parameter integer ADDR_W   = 2,
    parameter integer TURN_H   = 2,
    parameter integer TURN_W   = 2
) (
    input  wire                       clk,
    input  wire                       rst,
    input  wire                       issue,
    output wire [KW*ADDR_W-1:0]       places,
    output wire [TURN_H-1:0]          turn_y,
    output wire [TURN_W-1:0]          turn_x,
    output wire [KH-1:0]              outside_y,
    output wire [KW-1:0]              outside_x,
    output wire                       window_end
);
    function integer wrap(input integer v, input integer m);
        wrap = ((v % m) + m) % m;
    endfunction
    function integer down(input integer v);  // columns to addresses in a bank, rounded down
        down = (v - wrap(v, BANKS)) / BANKS;
    endfunction

    // Loops.
    localparam integer Y_0 = KH - 1 - PT, Y_LAST = Y_0 + (OUT_H - 1) * SH;
    localparam integer X_0 = KW - 1 - PL, X_LAST = X_0 + (OUT_W - 1) * SW;
    // Bits of a signed row and column: enough for the last taps, the image and the kernel.
    localparam integer Y_MOST   = (Y_LAST > HEIGHT) ? Y_LAST : HEIGHT;
    localparam integer X_MOST   = (X_LAST > WIDTH) ? X_LAST : WIDTH;
    localparam integer Y_SIDE   = (PT > KH) ? PT : KH;
    localparam integer X_SIDE   = (PL > KW) ? PL : KW;
    localparam integer ROW_W    = 1 + $clog2(((Y_MOST > Y_SIDE) ? Y_MOST : Y_SIDE) + 1);
    localparam integer COLUMN_W = 1 + $clog2(((X_MOST > X_SIDE) ? X_MOST : X_SIDE) + 1);
    reg signed [ROW_W-1:0]    row_reg;      // of the last tap, as is column_reg
    reg signed [COLUMN_W-1:0] column_reg;
    // Registers that mark the last values of row and column: they have high fan-out.
    localparam integer X_BEFORE = X_LAST - SW, Y_BEFORE = Y_LAST - SH;
    wire before_last_x = column_reg == $signed(X_BEFORE[COLUMN_W-1:0]);
    wire before_last_y = row_reg == $signed(Y_BEFORE[ROW_W-1:0]);
    reg  x_last_reg, y_last_reg;
    hg_loop #(.N(FOLDS)) folds (.clk(clk), .rst(rst), .step(issue), .last(window_end));
    wire row_end   = window_end && x_last_reg;
    wire image_end = row_end && y_last_reg;

    // Row slot of tap 0, with a step at the end of a row (R) and of an image (I).
    localparam integer H_0 = wrap(-PT, ROWS), H_R = wrap(SH, ROWS);
    localparam integer H_I = wrap(HEIGHT - (OUT_H - 1) * SH, ROWS);
    reg  [TURN_H-1:0] turn_y_reg;
    wire [TURN_H-1:0] h_step = image_end ? H_I[TURN_H-1:0] : H_R[TURN_H-1:0];
    wire [TURN_H-1:0] h_sum  = turn_y_reg + h_step;
    wire [TURN_H:0]   h_cut  = {1'b0, turn_y_reg} + ({1'b0, h_step} - ROWS[TURN_H:0]);
    assign turn_y = turn_y_reg;

    // Columns from the first tap of a window to that of the next: in the same row (X), R, I. A row begins
    // at address 0 of its slot. Without slots (KH is 1), the pixel count continues.
    localparam integer BACK = (OUT_W - 1) * SW;
    localparam integer C_0  = ((KH == 1) ? -PT * WIDTH : 0) - PL;
    localparam integer C_R  = ((KH == 1) ? SH * WIDTH : 0) - BACK;
    localparam integer C_I  = ((KH == 1) ? (HEIGHT - (OUT_H - 1) * SH) * WIDTH : 0) - BACK;
    localparam integer W_0 = wrap(C_0, BANKS), W_X = wrap(SW, BANKS);
    localparam integer W_R = wrap(C_R, BANKS), W_I = wrap(C_I, BANKS);
    reg  [TURN_W-1:0] turn_x_reg;
    wire [TURN_W-1:0] w_step = image_end ? W_I[TURN_W-1:0] : row_end ? W_R[TURN_W-1:0] : W_X[TURN_W-1:0];
    wire [TURN_W-1:0] w_sum  = turn_x_reg + w_step;
    wire [TURN_W-1:0] w_cut  = turn_x_reg + (w_step - BANKS[TURN_W-1:0]);
    // Flags of steps that wrap around, per column bank. They avoid a carry chain before that of the
    // address.
    localparam [(1<<TURN_W)-1:0] EACH = {(1<<TURN_W){1'b1}};
    localparam [(1<<TURN_W)-1:0] OVER_X = EACH << (BANKS - W_X), OVER_R = EACH << (BANKS - W_R);
    localparam [(1<<TURN_W)-1:0] OVER_I = EACH << (BANKS - W_I);
    wire over_x = OVER_X[turn_x_reg], over_r = OVER_R[turn_x_reg], over_i = OVER_I[turn_x_reg];
    wire carry = image_end ? over_i : row_end ? over_r : over_x;
    assign turn_x = turn_x_reg;

    // Address of the column bank of tap 0. Addresses of rows outside their slots do not matter.
    localparam integer PLACES = (KH == 1) ? BANK : (1 << ADDR_W);
    localparam [0:0]   EVEN   = PLACES == (1 << ADDR_W);
    localparam integer A_0  = wrap(down(C_0) * FOLDS, PLACES);
    localparam integer A_F  = wrap(1, PLACES);
    localparam integer A_X  = wrap(down(SW) * FOLDS - (FOLDS - 1), PLACES);
    localparam integer A_R  = wrap(down(C_R) * FOLDS - (FOLDS - 1), PLACES);
    localparam integer A_I  = wrap(down(C_I) * FOLDS - (FOLDS - 1), PLACES);
    localparam integer A_XC = wrap(down(SW) * FOLDS + 1, PLACES);
    localparam integer A_RC = wrap(down(C_R) * FOLDS + 1, PLACES);
    localparam integer A_IC = wrap(down(C_I) * FOLDS + 1, PLACES);
    reg  [ADDR_W-1:0] address_reg;
    wire [ADDR_W-1:0] a_same = image_end ? A_I[ADDR_W-1:0] : row_end ? A_R[ADDR_W-1:0] : A_X[ADDR_W-1:0];
    wire [ADDR_W-1:0] a_next = image_end ? A_IC[ADDR_W-1:0] : row_end ? A_RC[ADDR_W-1:0] : A_XC[ADDR_W-1:0];
    wire [ADDR_W-1:0] a_step = !window_end ? A_F[ADDR_W-1:0] : carry ? a_next : a_same;
    wire [ADDR_W-1:0] a_sum  = address_reg + a_step;
    wire [ADDR_W:0]   a_cut  = {1'b0, address_reg} + ({1'b0, a_step} - PLACES[ADDR_W:0]);
    wire [ADDR_W-1:0] a_new  = (EVEN || a_cut[ADDR_W]) ? a_sum : a_cut[ADDR_W-1:0];

    // A column bank before that of tap 0 holds the pixel one address ahead. A copy holds the pixel of its
    // tap.
    genvar t;
    generate
        for (t = 0; t < KW; t = t + 1) begin : bank
            localparam integer T = t, AHEAD = wrap((BANKS == 1) ? t * FOLDS : FOLDS, PLACES);
            wire              here = BANKS > 1 && (t + 1 == KW || turn_x_reg <= T[TURN_W-1:0]);
            wire [ADDR_W-1:0] sum  = address_reg + AHEAD[ADDR_W-1:0];
            wire [ADDR_W:0]   cut  = {1'b0, address_reg} + (AHEAD[ADDR_W:0] - PLACES[ADDR_W:0]);
            assign places[t*ADDR_W +: ADDR_W] = here ? address_reg
                                              : (EVEN || cut[ADDR_W]) ? sum : cut[ADDR_W-1:0];
        end
    endgenerate

    wire [COLUMN_W-1:0] x_step = row_end ? -BACK[COLUMN_W-1:0] : SW[COLUMN_W-1:0];
    localparam integer UP = (OUT_H - 1) * SH;
    wire [ROW_W-1:0]    y_step = image_end ? -UP[ROW_W-1:0] : SH[ROW_W-1:0];
    always @(posedge clk) begin
        if (issue) begin
            address_reg <= a_new;
            if (window_end) column_reg <= column_reg + x_step;
            if (window_end) x_last_reg <= row_end ? X_0 == X_LAST : before_last_x;
            if (window_end) turn_x_reg <= carry ? w_cut[TURN_W-1:0] : w_sum;
            if (row_end)    row_reg    <= row_reg + y_step;
            if (row_end)    y_last_reg <= image_end ? Y_0 == Y_LAST : before_last_y;
            if (row_end)    turn_y_reg <= h_cut[TURN_H] ? h_sum : h_cut[TURN_H-1:0];
        end
        if (rst) begin
            address_reg <= A_0[ADDR_W-1:0];
            x_last_reg  <= X_0 == X_LAST;
            y_last_reg  <= Y_0 == Y_LAST;
            column_reg  <= X_0[COLUMN_W-1:0];
            row_reg     <= Y_0[ROW_W-1:0];
            turn_x_reg  <= W_0[TURN_W-1:0];
            turn_y_reg  <= H_0[TURN_H-1:0];
        end
    end

    // Compare only the taps that can be outside.
    generate
        for (t = 0; t < KH; t = t + 1) begin : rows
            localparam integer FIRST = KH - 1 - t, BEYOND = HEIGHT + FIRST;  // of the last tap
            wire above = t < PT && row_reg < $signed(FIRST[ROW_W-1:0]);
            wire below = Y_LAST >= BEYOND && row_reg >= $signed(BEYOND[ROW_W-1:0]);
            assign outside_y[t] = above || below;
        end
        for (t = 0; t < KW; t = t + 1) begin : columns
            localparam integer FIRST = KW - 1 - t, BEYOND = WIDTH + FIRST;
            wire left  = t < PL && column_reg < $signed(FIRST[COLUMN_W-1:0]);
            wire right = X_LAST >= BEYOND && column_reg >= $signed(BEYOND[COLUMN_W-1:0]);
            assign outside_x[t] = left || right;
        end
    endgenerate
endmodule
`default_nettype wire
