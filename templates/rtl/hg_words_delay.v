// hg_words_delay: Codes and word numbers at the cycles in which the DA tables of hg_words_row read them.
//
// Purpose     Part of hg_mvu_words. Delays the codes of the third and fourth DA table of each four, once for
//             all rows, and the word number for each.
// Parameters  SIMD, X_W, ADDR_W, FIRST, EVERY, CUT  See hg_words_row.
// Latency     0 for the codes of the first two DA tables and for word 0. Otherwise 1 or 2 cycles with en = 1,
//             see hg_words_row.
// Contract    Outputs are the inputs x and words of hg_words_row.
`default_nettype none
module hg_words_delay #(
    parameter integer SIMD   = 4,
    parameter integer X_W    = 4,
    parameter integer ADDR_W = 2,
    parameter integer FIRST  = 4,
    parameter integer EVERY  = 2,
    parameter integer CUT    = 0
) (
    input  wire                clk,
    input  wire                en,
    input  wire [SIMD*X_W-1:0] x,
    input  wire [ADDR_W-1:0]   word,
    output wire [SIMD*X_W-1:0] x_late,
    output wire [3*ADDR_W-1:0] words
);
    localparam integer REST  = FIRST - 1;
    localparam integer SPAN  = FIRST + 3 * REST;
    // Cycles after which the last DA table of four reads.
    localparam integer TURNS = (CUT != 0) ? 0 : (EVERY <= 1) ? 2 : 1;
    localparam integer MOST  = (SIMD < 2 * FIRST) ? 0 : TURNS;

    genvar k, n;
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
    endgenerate
endmodule
`default_nettype wire
