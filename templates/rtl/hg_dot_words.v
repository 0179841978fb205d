// hg_dot_words: Dot products of SIMD codes with rows of weights that take only a few different words.
//
// Purpose     Rows of hg_mac_words, which share the same codes and store no weights: each row is an
//             hg_words_row.
// Parameters  ROWS  Number of rows.
//             SIMD, X_W, X_SIGNED, ADDR_W, FIRST, T_W, S_W, EVERY, CUT  See hg_words_row.
//             FILE  Row r has the file FILE_<r>.mem (four digits), see hg_words_row.
// Latency     The latency of a row, from the first two DA tables of its codes; all advancing on en.
// Contract    The sum of row r is exact, of X_W + S_W bits at bit r * (X_W + S_W). Codes that DA tables
//             read a cycle or two later are delayed here, once for all rows.
`default_nettype none
module hg_dot_words #(
    parameter integer ROWS     = 1,
    parameter integer SIMD     = 4,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer ADDR_W   = 2,
    parameter integer FIRST    = 4,
    parameter integer T_W      = 6,
    parameter integer S_W      = 8,
    parameter integer EVERY    = 2,
    parameter integer CUT      = 0,
    parameter         FILE     = ""
) (
    input  wire                      clk,
    input  wire                      en,
    input  wire [SIMD*X_W-1:0]       x,
    input  wire [ADDR_W-1:0]         word,
    output wire [ROWS*(X_W+S_W)-1:0] sums
);
    localparam integer OUT_W = X_W + S_W;
    localparam integer REST  = FIRST - 1;
    localparam integer SPAN  = FIRST + 3 * REST;
    // Cycles after which the last DA table of four reads.
    localparam integer TURNS = (CUT != 0) ? 0 : (EVERY <= 1) ? 2 : 1;
    localparam integer MOST  = (SIMD < 2 * FIRST) ? 0 : TURNS;

    wire [SIMD*X_W-1:0]   x_late;
    wire [3*ADDR_W-1:0]   words;
    genvar k, n, r;
    generate
        for (k = 0; k < SIMD; k = k + 1) begin : code
            localparam integer TABLE = (k % SPAN < FIRST) ? 0 : 1 + (k % SPAN - FIRST) / REST;
            localparam integer LATE  = (TABLE < 2) ? 0 : (TABLE == 2 && TURNS > 0) ? 1 : TURNS;
            hg_delay #(.WIDTH(X_W), .CYCLES(LATE)) turn (
                .clk(clk), .en(en), .d(x[k*X_W +: X_W]), .q(x_late[k*X_W +: X_W])
            );
        end
        for (n = 0; n < 3; n = n + 1) begin : number
            hg_delay #(.WIDTH(ADDR_W), .CYCLES((n < MOST) ? n : MOST)) turn (
                .clk(clk), .en(en), .d(word), .q(words[n*ADDR_W +: ADDR_W])
            );
        end
        for (r = 0; r < ROWS; r = r + 1) begin : row
            localparam integer D3 = 48 + (r / 1000) % 10, D2 = 48 + (r / 100) % 10, D1 = 48 + (r / 10) % 10;
            localparam integer D0 = 48 + r % 10;
            hg_words_row #(
                .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .ADDR_W(ADDR_W), .FIRST(FIRST), .T_W(T_W),
                .S_W(S_W), .EVERY(EVERY), .CUT(CUT),
                .FILE(FILE == "" ? "" : {FILE, "_", D3[7:0], D2[7:0], D1[7:0], D0[7:0], ".mem"})
            ) dot (
                .clk(clk), .en(en), .x(x_late), .words(words), .sum(sums[r*OUT_W +: OUT_W])
            );
        end
    endgenerate
endmodule
`default_nettype wire
