// hg_window_walk: Order of the words that hg_window issues.
//
// Purpose     Loops over the words of windows. Gives the place in the buffer, the pixel, and the loops that
//             the word ends.
// Parameters  HEIGHT to DEPTH  As in hg_window.
//             ADDR_W          Bits of an address.
// Latency     The outputs describe the word that `issue` issues at this edge; the next word follows.
// Contract    The address is modulo DEPTH and also counts pixels outside the image. Uses only counters and
//             sums with constants. Output start: first word of a window. Outputs *_end: last word of a
//             reduction, of a window.
`default_nettype none
module hg_window_walk #(
    parameter integer HEIGHT = 4,
    parameter integer WIDTH  = 5,
    parameter integer KH     = 3,
    parameter integer KW     = 3,
    parameter integer SH     = 1,
    parameter integer SW     = 1,
    parameter integer DH     = 1,
    parameter integer DW     = 1,
    parameter integer PT     = 1,
    parameter integer PL     = 1,
    parameter integer OUT_H  = 4,
    parameter integer OUT_W  = 5,
    parameter integer GROUPS = 1,
    parameter integer FOLDS  = 2,
    parameter integer REPEAT = 2,
    parameter integer DEPTH  = 26,
    parameter integer ADDR_W = 5
) (
    input  wire                       clk,
    input  wire                       rst,
    input  wire                       issue,
    output wire                       start,
    output wire [ADDR_W-1:0]          address,
    output wire                       outside,
    output wire                       reduction_end,
    output wire                       window_end
);
    localparam integer SPAN_Y = (KH - 1) * DH;
    localparam integer SPAN_X = (KW - 1) * DW;
    localparam integer Y_LAST = (OUT_H - 1) * SH + SPAN_Y - PT;
    localparam integer X_LAST = (OUT_W - 1) * SW + SPAN_X - PL;
    // Bits of a signed row and column: enough for the taps and the image.
    localparam integer Y_TOP    = (Y_LAST > HEIGHT) ? Y_LAST : HEIGHT;
    localparam integer X_TOP    = (X_LAST > WIDTH) ? X_LAST : WIDTH;
    localparam integer ROW_W    = 1 + $clog2(((Y_TOP > PT) ? Y_TOP : PT) + 1);
    localparam integer COLUMN_W = 1 + $clog2(((X_TOP > PL) ? X_TOP : PL) + 1);

    // Counters of the loops. w_end: with the last fold, this word ends the loop kw; likewise for the outer
    // loops.
    reg start_reg;
    reg signed [COLUMN_W-1:0] x_reg;
    reg signed [ROW_W-1:0]    y_reg;
    // Registers that mark the last step of each loop and the last values of x and y: the path to the next
    // address begins at them.
    wire f_end, w_end, h_last, r_last, g_last;
    reg  x_last_reg, y_last_reg;
    wire h_end = w_end && h_last, r_end = h_end && r_last, g_end = r_end && g_last;
    wire x_end = g_end && x_last_reg, y_end = x_end && y_last_reg;

    // Steps of the pixel, X and Y, and of the address, at the end of the loop with that letter. I: of an
    // image.
    function integer wrap(input integer v);
        wrap = ((v % DEPTH) + DEPTH) % DEPTH;
    endfunction
    localparam integer PIXEL = GROUPS * FOLDS;
    localparam integer X_H = -SPAN_X, X_X = SW - SPAN_X, X_Y = -X_LAST - PL;
    localparam integer Y_R = -SPAN_Y, Y_Y = SH - SPAN_Y, Y_I = -Y_LAST - PT;
    localparam integer BACK   = -(SPAN_Y * WIDTH + SPAN_X) * PIXEL - (FOLDS - 1);
    localparam integer BACK_G = BACK - (GROUPS - 1) * FOLDS;
    localparam integer BACK_X = BACK_G - (OUT_W - 1) * SW * PIXEL;
    localparam integer A_F = wrap(1);
    localparam integer A_W = wrap(DW * PIXEL - (FOLDS - 1));
    localparam integer A_H = wrap((DH * WIDTH - SPAN_X) * PIXEL - (FOLDS - 1));
    localparam integer A_R = wrap(BACK);
    localparam integer A_G = wrap(BACK + FOLDS);
    localparam integer A_X = wrap(BACK_G + SW * PIXEL);
    localparam integer A_Y = wrap(BACK_X + SH * WIDTH * PIXEL);
    localparam integer A_I = wrap(BACK_X + (HEIGHT - (OUT_H - 1) * SH) * WIDTH * PIXEL);
    localparam integer A_0 = wrap(-(PT * WIDTH + PL) * PIXEL);

    wire [COLUMN_W-1:0] x_step = x_end ? X_Y[COLUMN_W-1:0] : g_end ? X_X[COLUMN_W-1:0]
                               : w_end ? X_H[COLUMN_W-1:0] : DW[COLUMN_W-1:0];
    wire [ROW_W-1:0]    y_step = y_end ? Y_I[ROW_W-1:0] : x_end ? Y_Y[ROW_W-1:0]
                               : h_end ? Y_R[ROW_W-1:0] : DH[ROW_W-1:0];
    // Next x and y are their last values. These are the largest, so no negative step leads there.
    localparam integer X_TAP = X_LAST - DW, X_WINDOW = X_LAST - X_X;
    localparam integer Y_TAP = Y_LAST - DH, Y_WINDOW = Y_LAST - Y_Y;
    wire x_next_last = x_end ? X_Y == 0
                     : g_end ? X_X >= 0 && x_reg == $signed(X_WINDOW[COLUMN_W-1:0])
                     : w_end ? KW == 1 && x_last_reg : x_reg == $signed(X_TAP[COLUMN_W-1:0]);
    wire y_next_last = y_end ? Y_I == 0
                     : x_end ? Y_Y >= 0 && y_reg == $signed(Y_WINDOW[ROW_W-1:0])
                     : h_end ? KH == 1 && y_last_reg : y_reg == $signed(Y_TAP[ROW_W-1:0]);

    // The step, and the step minus DEPTH. The latter is the right one if its result stays positive.
    localparam integer C_F = A_F - DEPTH, C_W = A_W - DEPTH, C_H = A_H - DEPTH, C_R = A_R - DEPTH;
    localparam integer C_G = A_G - DEPTH, C_X = A_X - DEPTH, C_Y = A_Y - DEPTH, C_I = A_I - DEPTH;
    reg  [ADDR_W-1:0] address_reg;
    wire [ADDR_W-1:0] a_step = !f_end ? A_F[ADDR_W-1:0] : y_end ? A_I[ADDR_W-1:0]
                             : x_end  ? A_Y[ADDR_W-1:0] : g_end ? A_X[ADDR_W-1:0]
                             : r_end  ? A_G[ADDR_W-1:0] : h_end ? A_R[ADDR_W-1:0]
                             : w_end  ? A_H[ADDR_W-1:0] : A_W[ADDR_W-1:0];
    wire [ADDR_W:0]   c_step = !f_end ? C_F[ADDR_W:0] : y_end ? C_I[ADDR_W:0]
                             : x_end  ? C_Y[ADDR_W:0] : g_end ? C_X[ADDR_W:0]
                             : r_end  ? C_G[ADDR_W:0] : h_end ? C_R[ADDR_W:0]
                             : w_end  ? C_H[ADDR_W:0] : C_W[ADDR_W:0];
    wire [ADDR_W-1:0] a_sum = address_reg + a_step;
    wire [ADDR_W:0]   a_cut = {1'b0, address_reg} + c_step;

    wire tap = issue && f_end;
    hg_loop #(.N(FOLDS)) folds (.clk(clk), .rst(rst), .step(issue), .last(f_end));
    hg_loop #(.N(KW)) columns (.clk(clk), .rst(rst), .step(tap), .last(w_end));
    hg_loop #(.N(KH)) rows (.clk(clk), .rst(rst), .step(tap && w_end), .last(h_last));
    hg_loop #(.N(REPEAT)) repeats (.clk(clk), .rst(rst), .step(tap && h_end), .last(r_last));
    hg_loop #(.N(GROUPS)) groups (.clk(clk), .rst(rst), .step(tap && r_end), .last(g_last));

    always @(posedge clk) begin
        if (issue) begin
            address_reg <= a_cut[ADDR_W] ? a_sum : a_cut[ADDR_W-1:0];
            start_reg   <= f_end && g_end;
        end
        if (tap) begin
            x_reg <= x_reg + x_step;
            x_last_reg <= x_next_last;
            if (w_end) begin
                y_reg <= y_reg + y_step;
                y_last_reg <= y_next_last;
            end
        end
        if (rst) begin
            address_reg <= A_0[ADDR_W-1:0];
            start_reg   <= 1'b1;
            x_reg       <= -PL[COLUMN_W-1:0];
            y_reg       <= -PT[ROW_W-1:0];
            x_last_reg  <= X_LAST == -PL;
            y_last_reg  <= Y_LAST == -PT;
        end
    end

    // Compare only the sides of the image that have padding.
    localparam integer BOTTOM = HEIGHT, RIGHT = WIDTH;
    wire above = PT > 0 && y_reg[ROW_W-1];
    wire below = Y_LAST >= HEIGHT && y_reg >= $signed(BOTTOM[ROW_W-1:0]);
    wire left  = PL > 0 && x_reg[COLUMN_W-1];
    wire right = X_LAST >= WIDTH && x_reg >= $signed(RIGHT[COLUMN_W-1:0]);

    assign start         = start_reg;
    assign address       = address_reg;
    assign outside       = above || below || left || right;
    assign reduction_end = f_end && h_end;
    assign window_end    = f_end && g_end;
endmodule
`default_nettype wire
