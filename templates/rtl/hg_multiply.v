// hg_multiply: Signed product, pipelined, in a DSP block or in rows of adders.
//
// Purpose     y = x * m, the multiplier of the rescaling units.
// Parameters  X_W     Bits of x (two's complement).
//             M_W     Bits of m (two's complement).
//             STYLE   0: a plain product, for a DSP block. 1: rows of adders, one for two bits of m (Booth,
//                     radix 4). A row is one carry chain of X_W + 3 bits with six-input logic. 2: m is the
//                     constant M, with a row for each nonzero digit of its canonical signed-digit form;
//                     port m is not used.
//             STAGES  Registers from x to y, at least 1. The rows are spread evenly over them.
//             M       The constant of STYLE 2.
// Latency     STAGES cycles, all advancing on en.
// Contract    Exact two's complement product of X_W + M_W bits.
`default_nettype none
module hg_multiply #(
    parameter integer   X_W    = 8,
    parameter integer   M_W    = 6,
    parameter integer   STYLE  = 1,
    parameter integer   STAGES = 2,
    parameter [M_W-1:0] M      = 0
) (
    input  wire                   clk,
    input  wire                   en,
    input  wire signed [X_W-1:0]  x,
    input  wire signed [M_W-1:0]  m,
    output wire [X_W+M_W-1:0]     y
);
    localparam integer Y_W = X_W + M_W;

    // Digits of M: bit i of DIGITS is 1 if digit i is not zero, bit i of MINUS if it is -1.
    localparam [M_W+1:0] WIDE   = {{2{M[M_W-1]}}, M};
    localparam [M_W+1:0] HALF   = {M[M_W-1], WIDE[M_W+1:1]};
    localparam [M_W+1:0] DIGITS = HALF ^ (WIDE + HALF);
    localparam [M_W+1:0] MINUS  = HALF & DIGITS;

    // Position of the nonzero digit number `rank`, or for rank = -1 the number of nonzero digits.
    function integer position(input integer rank);
        integer i, found;
        begin
            found    = 0;
            position = 0;
            for (i = 0; i <= M_W; i = i + 1) begin
                if (DIGITS[i] && (found == rank)) position = i;
                if (DIGITS[i]) found = found + 1;
            end
            if (rank < 0) position = found;
        end
    endfunction

    localparam integer ROWS = (STYLE == 0) ? 0 : (STYLE == 1) ? (M_W + 1) / 2 : position(-1);

    genvar s, e;
    generate
        if (STAGES < 1) begin : bad
            hg_parameter_error_multiply_stages bad ();
        end
        for (s = 0; s < STAGES; s = s + 1) begin : stage
            localparam integer FROM  = (s * ROWS) / STAGES;
            localparam integer COUNT = ((s + 1) * ROWS) / STAGES - FROM;
            wire signed [X_W-1:0]    x_in;
            wire signed [M_W-1:0]    m_in;
            wire [Y_W-1:0]           begin_sum, end_sum;
            reg  signed [X_W-1:0]    x_reg;
            reg  signed [M_W-1:0]    m_reg;
            reg  [Y_W-1:0]           sum_reg;
            if (s == 0) begin : first
                assign x_in = x;
                assign m_in = m;
                if (STYLE == 0) begin : block
                    (* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)
                    wire signed [Y_W-1:0] product;
                    assign product = x * m;
                    assign begin_sum = product;
                end else begin : none
                    assign begin_sum = {Y_W{1'b0}};
                end
            end else begin : next
                assign x_in = stage[s-1].x_reg;
                assign m_in = stage[s-1].m_reg;
                assign begin_sum = stage[s-1].sum_reg;
            end
            for (e = 0; e < COUNT; e = e + 1) begin : row
                // The row adds to bits AT and up; the bits above the row are its sign.
                localparam integer AT = (STYLE == 1) ? 2 * (FROM + e) : position(FROM + e);
                wire [Y_W-1:0]      so_far, next_sum;
                if (e == 0) begin : above
                    assign so_far = begin_sum;
                end else begin : below
                    assign so_far = row[e-1].next_sum;
                end
                wire signed [Y_W+X_W+1:0] high = $signed({{X_W+2{so_far[Y_W-1]}}, so_far}) >>> AT;
                wire [X_W+1:0] sum;
                if (STYLE == 1) begin : booth
                    wire [M_W+2:0] bits = {{2{m_in[M_W-1]}}, m_in, 1'b0} >> AT;
                    wire [2:0]     code = bits[2:0];
                    wire one = code[1] ^ code[0];
                    wire two = (code == 3'b011) || (code == 3'b100);
                    wire neg = code[2];
                    wire [X_W+1:0] times1 = {{2{x_in[X_W-1]}}, x_in};
                    wire [X_W+1:0] times2 = {x_in[X_W-1], x_in, 1'b0};
                    wire [X_W+1:0] term   = (times1 & {X_W+2{one}} | times2 & {X_W+2{two}}) ^ {X_W+2{neg}};
                    wire unused_carry;
                    assign {sum, unused_carry} = {high[X_W+1:0], 1'b1} + {term, neg};
                    wire unused_bits = &{1'b0, bits};
                end else if (MINUS[AT]) begin : minus
                    assign sum = $signed(high[X_W+1:0]) - $signed({{2{x_in[X_W-1]}}, x_in});
                end else begin : plus
                    assign sum = $signed(high[X_W+1:0]) + $signed({{2{x_in[X_W-1]}}, x_in});
                end
                wire [2*Y_W+X_W+1:0] placed = {{2*Y_W{sum[X_W+1]}}, sum} << AT;
                assign next_sum = placed[Y_W-1:0] | (so_far & ~({Y_W{1'b1}} << AT));
                wire unused_row = &{1'b0, high, placed};
            end
            if (COUNT == 0) begin : through
                assign end_sum = begin_sum;
            end else begin : rows
                assign end_sum = row[COUNT-1].next_sum;
            end
            always @(posedge clk) if (en) begin
                x_reg   <= x_in;
                m_reg   <= m_in;
                sum_reg <= end_sum;
            end
        end
    endgenerate
    assign y = stage[STAGES-1].sum_reg;
    wire unused = &{1'b0, m, DIGITS, MINUS, stage[STAGES-1].x_reg, stage[STAGES-1].m_reg};
endmodule
`default_nettype wire
