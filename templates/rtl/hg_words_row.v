// hg_words_row: Dot product of SIMD codes with SIMD weights that take only a few different words.
//
// Purpose     One row of hg_mvu_words, as distributed arithmetic. A DA table holds the sums of the weights
//             of a few codes. One bit of each of these codes, and the word number, select the sum. The
//             selected sums of all DA tables for one bit position are added. The sums of all bit positions
//             are then added with shifts.
// Parameters  SIMD       Terms.
//             X_W        Bits of a code x.
//             X_SIGNED   1: x is two's complement, of at least 2 bits; 0: unsigned.
//             ADDR_W     Bits of the number of a word.
//             FIRST      Codes of the first DA table of each four, at least 2. The others have one less.
//             T_W        Bits of an entry, two's complement.
//             S_W        Bits of a sum of entries, at least T_W. The caller proves that the sums of all DA
//                        tables fit, for every word and all bits of the codes.
//             EVERY      Pipeline registers, see hg_adder_tree. Here 0 means 1.
//             CUT        1: a register between DA tables and their adders, where LUTs are too small for
//                        both.
//             FILE       $readmemh file with T_W words of 2^(FIRST + ADDR_W) bits for each DA table. Word
//                        i of a DA table is bit i of all entries, entry 0 in the low bit. The number of an
//                        entry is, from the low bits: the word number, then a bit of each of the DA
//                        table's codes, the first code lowest. Logic that rows can share then depends on
//                        the word number alone, and tools put no LUT before another.
// Latency     CUT, plus the latency of the sum of four DA tables: 1 for two, otherwise 2, or 3 with EVERY 1
//             and no CUT; plus ceil(log2(tables / 4)) / EVERY of a tree, and ceil(log2(X_W)) / EVERY, each
//             rounded up. All registers advance on en.
// Contract    The sum is exact, of X_W + S_W bits. A bit of a DA table fits into a six-input LUT if FIRST +
//             ADDR_W is 6; if it is 5, so does the bit to which it is added. Adding therefore costs nothing
//             more, and DA tables are added in series. Codes of the third of four arrive one cycle after
//             those of the first two. Codes of the fourth arrive with the third or, with EVERY 1, one cycle
//             later. The word number accompanies each, in words 1 and 2. With CUT all arrive together:
//             pairs are added, then their sums.
`default_nettype none
module hg_words_row #(
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
    input  wire                clk,
    input  wire                en,
    input  wire [SIMD*X_W-1:0] x,
    input  wire [3*ADDR_W-1:0] words,
    output wire [X_W+S_W-1:0]  sum
);
    localparam integer REST   = FIRST - 1;
    localparam integer SPAN   = FIRST + 3 * REST;
    localparam integer GROUPS = (SIMD + SPAN - 1) / SPAN;
    localparam integer LEFT   = SIMD - (GROUPS - 1) * SPAN;
    localparam integer LAST   = (LEFT <= FIRST) ? 1 : 1 + (LEFT - FIRST + REST - 1) / REST;
    localparam integer TABLES = 4 * (GROUPS - 1) + LAST;
    localparam integer DEPTH  = 1 << (FIRST + ADDR_W);
    localparam integer TWO_W  = (T_W + 1 < S_W) ? T_W + 1 : S_W;
    localparam integer P_W    = (T_W + 2 < S_W) ? T_W + 2 : S_W;
    localparam integer ALL_W  = P_W + $clog2(GROUPS);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer TURNS  = (CUT != 0) ? 0 : (STEP == 1) ? 2 : 1;

    reg [DEPTH-1:0] rom [0:TABLES*T_W-1];
    initial if (FILE != "") $readmemh(FILE, rom);

    // Bit j of each code, and the DA table entry for these bits. Columns of a DA table are words of the
    // file.
    function [FIRST-1:0] taken(input [FIRST*X_W-1:0] codes, input integer place);
        integer k;
        for (k = 0; k < FIRST; k = k + 1) taken[k] = codes[k*X_W+place];
    endfunction
    function [T_W-1:0] entry(input [T_W*DEPTH-1:0] columns, input [FIRST+ADDR_W-1:0] number);
        integer k;
        reg [DEPTH-1:0] column;
        for (k = 0; k < T_W; k = k + 1) begin
            column   = columns[k*DEPTH +: DEPTH];
            entry[k] = column[number];
        end
    endfunction

    // The entry of each DA table for each bit position: number (t, j) is at bit (t * X_W + j) * T_W.
    wire [TABLES*X_W*T_W-1:0] read, entries;
    wire unused_words = &{1'b0, words};
    hg_delay #(.WIDTH(TABLES*X_W*T_W), .CYCLES(CUT)) cut (.clk(clk), .en(en), .d(read), .q(entries));
    genvar t, i, j, g;
    generate
        for (t = 0; t < TABLES; t = t + 1) begin : table_of_sums
            localparam integer FROM  = t / 4 * SPAN + ((t % 4 == 0) ? 0 : FIRST + (t % 4 - 1) * REST);
            localparam integer MOST  = (t % 4 == 0) ? FIRST : REST;
            localparam integer COUNT = (SIMD - FROM < MOST) ? SIMD - FROM : MOST;
            localparam integer LATE  = (t % 4 < 2) ? 0 : (t % 4 == 2 && TURNS > 0) ? 1 : TURNS;
            wire [COUNT*X_W-1:0] x_now    = x[FROM*X_W +: COUNT*X_W];
            wire [ADDR_W-1:0]    word_now = words[LATE*ADDR_W +: ADDR_W];
            wire [T_W*DEPTH-1:0] columns;
            for (i = 0; i < T_W; i = i + 1) begin : bits
                assign columns[i*DEPTH +: DEPTH] = rom[t*T_W+i];
            end
            wire [(FIRST+1)*X_W-1:0] codes = {{(FIRST+1-COUNT)*X_W{1'b0}}, x_now};
            wire unused_codes = &{1'b0, codes[FIRST*X_W +: X_W]};
            for (j = 0; j < X_W; j = j + 1) begin : place
                wire [FIRST-1:0]      ones = taken(codes[FIRST*X_W-1:0], j);
                wire [FIRST+ADDR_W:0] number = {{FIRST+1-MOST{1'b0}}, ones[MOST-1:0], word_now};
                assign read[(t*X_W+j)*T_W +: T_W] = entry(columns, number[FIRST+ADDR_W-1:0]);
                wire unused_place = &{1'b0, ones, number};
            end
        end
    endgenerate

    // Sums of four DA tables, then of all of them, per bit position.
    wire [X_W*S_W-1:0] totals;
    generate
        for (j = 0; j < X_W; j = j + 1) begin : plane
            wire [GROUPS*P_W-1:0] parts;
            for (g = 0; g < GROUPS; g = g + 1) begin : group
                localparam integer OWN = (g == GROUPS - 1) ? LAST : 4;
                wire [4*T_W-1:0] own;
                for (t = 0; t < 4; t = t + 1) begin : each
                    if (t < OWN) begin : used
                        assign own[t*T_W +: T_W] = entries[((4*g+t)*X_W+j)*T_W +: T_W];
                    end else begin : none
                        assign own[t*T_W +: T_W] = {T_W{1'b0}};
                    end
                end
                wire [P_W-1:0] value [0:3];
                for (t = 0; t < 4; t = t + 1) begin : wide
                    wire [P_W+T_W-1:0] all = {{P_W{own[t*T_W+T_W-1]}}, own[t*T_W +: T_W]};
                    assign value[t] = all[P_W-1:0];
                    wire unused_wide = &{1'b0, all};
                end
                // a - ~b is a + b + 1: tools then merge the DA table into the LUT of the adder.
                reg  [TWO_W-1:0] two_reg;
                (* keep *) wire [TWO_W:0] two;
                assign two = {value[0][TWO_W-1:0], 1'b0} - ~{value[1][TWO_W-1:0], 1'b0};
                always @(posedge clk) if (en) two_reg <= two[TWO_W:1];
                wire [P_W+TWO_W-1:0] two_wide = {{P_W{two_reg[TWO_W-1]}}, two_reg};
                wire unused_two = &{1'b0, two[0], two_wide, value[0], value[1], value[2], value[3]};
                if (TABLES <= 2) begin : short
                    assign parts[g*P_W +: P_W] = two_wide[P_W-1:0];
                end else if (CUT != 0) begin : apart
                    reg  [TWO_W-1:0] more_reg;
                    reg  [P_W-1:0]   four_reg;
                    wire [TWO_W-1:0] more = value[2][TWO_W-1:0] + value[3][TWO_W-1:0];
                    wire [P_W+TWO_W-1:0] more_wide = {{P_W{more_reg[TWO_W-1]}}, more_reg};
                    always @(posedge clk) if (en) begin
                        more_reg <= more;
                        four_reg <= two_wide[P_W-1:0] + more_wide[P_W-1:0];
                    end
                    assign parts[g*P_W +: P_W] = four_reg;
                    wire unused_apart = &{1'b0, more_wide};
                end else begin : chain
                    reg  [P_W-1:0] four_reg;
                    wire [P_W-1:0] ahead;
                    (* keep *) wire [P_W:0] three;
                    (* keep *) wire [P_W:0] four;
                    hg_delay #(.WIDTH(P_W), .CYCLES(TURNS - 1)) turn (
                        .clk(clk), .en(en), .d(three[P_W:1]), .q(ahead)
                    );
                    assign three = {two_wide[P_W-1:0], 1'b0} - ~{value[2], 1'b0};
                    assign four  = {ahead, 1'b0} - ~{value[3], 1'b0};
                    always @(posedge clk) if (en) four_reg <= four[P_W:1];
                    assign parts[g*P_W +: P_W] = four_reg;
                    wire unused_chain = &{1'b0, three[0], four[0]};
                end
            end
            wire [ALL_W-1:0] total;
            hg_adder_tree #(
                .N(GROUPS), .IN_W(P_W), .SIGNED(1), .EVERY(STEP), .CLOSED(1)
            ) tree (
                .clk(clk), .en(en), .terms(parts), .sum(total)
            );
            wire [S_W+ALL_W-1:0] total_wide = {{S_W{total[ALL_W-1]}}, total};
            assign totals[j*S_W +: S_W] = total_wide[S_W-1:0];
            wire unused_total = &{1'b0, total_wide};
        end
    endgenerate

    hg_digits #(
        .N(X_W), .PLACE(1), .MINUS(X_SIGNED), .IN_W(S_W), .SIGNED(1), .OUT_W(X_W+S_W), .EVERY(STEP)
    ) merge (
        .clk(clk), .en(en), .digits(totals), .sum(sum)
    );
endmodule
`default_nettype wire
