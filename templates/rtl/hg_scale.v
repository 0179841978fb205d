// hg_scale: Rescaling by a multiplier and a shift, rounded and clamped.
//
// Purpose     code = clamp(round((x * M + R) / 2^SHIFT), LOW, HIGH), with M and R per channel.
// Parameters  LANES      Elements of a beat.
//             FOLDS      Sets of channel parameters; beat i uses set i mod FOLDS.
//             IN_W       Bits of x.
//             IN_SIGNED  1: x is two's complement; 0: unsigned.
//             M_W        Bits of the multiplier M (two's complement).
//             R_W        Bits of the addend R (two's complement) in units of 2^R_LSB.
//             R_LSB      Low bits of R that are zero and not stored.
//             SHIFT      Right shift.
//             MODE       0: floor; 1: half to even; 2: half to odd; 3: the word's ODD bit selects half to
//                        even (0) or half to odd (1).
//             SYMMETRIC  0: one R. 1: where x < 0 the low SHIFT bits of R are inverted. The function is
//                        then floor((|x| * M + R) / 2^SHIFT) with the sign of x. 2: where x < C, R2
//                        replaces R.
//             STYLE      0: DSP blocks; 1: rows of adders; 2: constant M (see hg_multiply).
//             STAGES     Registers of the product.
//             CONSTANTS  STYLE 2: M of each lane, lane 0 in the low bits. FOLDS is 1.
//             OUT_W      Bits of the code.
//             LOW, HIGH  Clamp bounds (two's complement of OUT_W + 1 bits).
//             FILE       $readmemh file of FOLDS words, LANES fields each. A lane's field holds, from the
//                        low bits: M, R, ODD (MODE 3), R2 (as R) and C (two's complement of IN_W + 1 bits).
//                        R2 and C exist only with SYMMETRIC 2.
// Latency     3 + STAGES cycles for MODE 0, otherwise 4 + STAGES. One beat per cycle.
// Contract    Exact integers. With STYLE 0 the registers before and after product and sum are plain, so
//             that a DSP block can absorb them.
`default_nettype none
module hg_scale #(
    parameter integer         LANES     = 2,
    parameter integer         FOLDS     = 2,
    parameter integer         IN_W      = 16,
    parameter integer         IN_SIGNED = 1,
    parameter integer         M_W       = 9,
    parameter integer         R_W       = 12,
    parameter integer         R_LSB     = 0,
    parameter integer         SHIFT     = 13,
    parameter integer         MODE      = 0,
    parameter integer         SYMMETRIC = 0,
    parameter integer         STYLE     = 1,
    parameter integer         STAGES    = 3,
    parameter [LANES*M_W-1:0] CONSTANTS = 0,
    parameter integer         OUT_W     = 8,
    parameter [OUT_W:0]       LOW       = -128,
    parameter [OUT_W:0]       HIGH      = 127,
    parameter                 FILE      = ""
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*IN_W-1:0]  s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer DEPTH = STAGES + ((MODE == 0) ? 3 : 4);
    localparam integer FW = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
    // Fields of a lane.
    localparam integer ODD_P = M_W + R_W;
    localparam integer R2_P  = ODD_P + ((MODE == 3) ? 1 : 0);
    localparam integer C_P   = R2_P + R_W;
    localparam integer W_W   = (SYMMETRIC == 2) ? C_P + IN_W + 1 : R2_P;
    // Signed x, product, addend, sum, and its integer part.
    localparam integer X_W   = IN_W + ((IN_SIGNED != 0) ? 0 : 1);
    localparam integer P_W   = X_W + M_W;
    localparam integer A_W   = (R_W + R_LSB > SHIFT) ? R_W + R_LSB : SHIFT + 1;
    localparam integer S_W   = ((P_W > A_W) ? P_W : A_W) + 1;
    localparam integer Q_W   = S_W - SHIFT + 1;   // room for the carry of rounding up
    localparam integer D_W   = R_W + 2;           // delayed to match the product: ODD, invert, R

    reg [DEPTH-1:0]  valid_reg;
    wire             en = m_ready || !valid_reg[DEPTH-1];
    wire [FW-1:0] unused_fold, fold_next;
    hg_index #(.N(FOLDS)) turn (
        .clk(clk), .rst(rst), .step(s_valid && en), .index(unused_fold), .next(fold_next)
    );

    assign s_ready = en;
    assign m_valid = valid_reg[DEPTH-1];

    (* rom_style = "auto" *) reg [LANES*W_W-1:0] rom [0:FOLDS-1];
    initial if (FILE != "") $readmemh(FILE, rom);
    reg [LANES*W_W-1:0] word_reg;
    always @(posedge clk) begin
        if ((s_valid && en) || rst) word_reg <= rom[fold_next];
        if (en) valid_reg <= {valid_reg[DEPTH-2:0], s_valid};
        if (rst) valid_reg <= {DEPTH{1'b0}};
    end

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [IN_W-1:0] x    = s_data[g*IN_W +: IN_W];
            wire [IN_W:0]   xs   = {(IN_SIGNED != 0) && x[IN_W-1], x};
            wire [W_W-1:0]  word = word_reg[g*W_W +: W_W];
            wire [R_W-1:0]  r;
            if (SYMMETRIC == 2) begin : centre
                wire below = $signed(xs) < $signed(word[C_P +: IN_W+1]);
                assign r = below ? word[R2_P +: R_W] : word[M_W +: R_W];
            end else begin : plain
                assign r = word[M_W +: R_W];
            end
            wire odd  = (MODE == 2) || ((MODE == 3) && word[(MODE == 3) ? ODD_P : 0]);
            wire flip = (SYMMETRIC == 1) && xs[IN_W];

            reg  [X_W-1:0]              x_reg;
            reg  [M_W-1:0]              m_reg;
            reg  [(STAGES+1)*D_W-1:0]   wait_reg;
            wire [P_W-1:0]              product;
            wire [D_W-1:0]              late   = wait_reg[STAGES*D_W +: D_W];
            wire [S_W-1:0]              addend = {{S_W-R_W{late[R_W-1]}}, late[R_W-1:0]} << R_LSB;
            wire [S_W-1:0]              mask   = ~({S_W{1'b1}} << SHIFT) & {S_W{late[R_W]}};
            reg  signed [S_W-1:0]       sum_reg;
            reg                         odd_reg;
            hg_multiply #(
                .X_W(X_W), .M_W(M_W), .STYLE(STYLE), .STAGES(STAGES), .M(CONSTANTS[g*M_W +: M_W])
            ) multiply (
                .clk(clk), .en(en), .x(x_reg), .m(m_reg), .y(product)
            );
            always @(posedge clk) if (en) begin
                x_reg    <= xs[X_W-1:0];
                m_reg    <= word[M_W-1:0];
                wait_reg <= {wait_reg[STAGES*D_W-1:0], odd, flip, r};
                sum_reg  <= $signed({{S_W-P_W{product[P_W-1]}}, product}) + $signed(addend ^ mask);
                odd_reg  <= late[R_W+1];
            end

            wire signed [Q_W-1:0] floor = {sum_reg[S_W-1], sum_reg[S_W-1:SHIFT]};
            wire signed [Q_W-1:0] rounded;
            wire inc;
            if (SHIFT == 0) begin : whole
                assign inc = 1'b0;
            end else begin : fraction
                wire [SHIFT-1:0] part = sum_reg[SHIFT-1:0];
                wire tie = part == ({SHIFT{1'b1}} & ~({SHIFT{1'b1}} >> 1));
                assign inc = part[SHIFT-1] && (!tie || (floor[0] ^ odd_reg));
            end
            if (MODE == 0) begin : down
                assign rounded = floor;
            end else begin : nearest
                reg signed [Q_W-1:0] round_reg;
                always @(posedge clk) if (en) round_reg <= floor + $signed({{Q_W-1{1'b0}}, inc});
                assign rounded = round_reg;
            end

            localparam signed [Q_W+OUT_W:0] LOW_S  = {{Q_W{LOW[OUT_W]}}, LOW};
            localparam signed [Q_W+OUT_W:0] HIGH_S = {{Q_W{HIGH[OUT_W]}}, HIGH};
            wire signed [Q_W+OUT_W:0] wide = {{OUT_W+1{rounded[Q_W-1]}}, rounded};
            reg  [OUT_W-1:0]          code_reg;
            always @(posedge clk) if (en)
                code_reg <= (wide < LOW_S)  ? LOW_S[OUT_W-1:0]
                          : (wide > HIGH_S) ? HIGH_S[OUT_W-1:0] : wide[OUT_W-1:0];
            assign m_data[g*OUT_W +: OUT_W] = code_reg;
            wire unused = &{1'b0, xs, word, sum_reg, odd_reg, late, inc};
        end
    endgenerate
endmodule
`default_nettype wire
