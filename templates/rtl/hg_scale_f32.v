// hg_scale_f32: Integer times float32, rounded to a code, exactly as float32 arithmetic computes it.
//
// Purpose     code = clamp(Z + rne(f32(f32(x + B) * s)), LOW, HIGH) with s = M * 2^(T - SHIFT). B, s and Z
//             are per channel; f32 and rne round to nearest even.
// Parameters  LANES           Elements of a beat.
//             FOLDS           Sets of channel parameters; beat i uses set i mod FOLDS.
//             IN_W            Bits of x.
//             IN_SIGNED       1: x is two's complement; 0: unsigned.
//             OFFSET_W        Bits of the offset B (two's complement); 0: none.
//             LEFT            Largest left shift T; 0: none.
//             U_W             Bits of |x + B| * 2^T, which saturates.
//             M_W             Bits of M (unsigned), at most 24.
//             SHIFT           Right shift of the product, at least 1.
//             Z_W             Bits of the zero point Z (two's complement); 0: none.
//             STYLE, STAGES, CONSTANTS, OUT_W, LOW, HIGH: As in hg_scale. CONSTANTS are unsigned.
//             FILE            $readmemh file of FOLDS words, LANES fields each. A lane's field holds, from
//                             the low bits: M, B, T (the fewest bits that hold LEFT) and Z.
// Latency     7 + STAGES cycles, 2 more if U_W > 24. One beat per cycle.
// Contract    Exact where |code - Z| < 2^22 and where saturation does not change the code. The product's
//             float32 rounding matters only where it creates a tie: at a distance of at most d = half a
//             unit in the last place from q + 1/2.
`default_nettype none
module hg_scale_f32 #(
    parameter integer         LANES     = 2,
    parameter integer         FOLDS     = 2,
    parameter integer         IN_W      = 16,
    parameter integer         IN_SIGNED = 1,
    parameter integer         OFFSET_W  = 8,
    parameter integer         LEFT      = 1,
    parameter integer         U_W       = 16,
    parameter integer         M_W       = 24,
    parameter integer         SHIFT     = 32,
    parameter integer         Z_W       = 4,
    parameter integer         STYLE     = 1,
    parameter integer         STAGES    = 7,
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
    localparam integer EXTRA = (U_W > 24) ? 2 : 0;
    localparam integer DEPTH = 7 + EXTRA + STAGES;
    localparam integer FW = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
    localparam integer T_W  = $clog2(LEFT + 1);
    localparam integer W_W  = M_W + OFFSET_W + T_W + Z_W;
    // The fields, with at least one bit each.
    localparam integer BB_W = (OFFSET_W > 0) ? OFFSET_W : 1;
    localparam integer TT_W = (T_W > 0) ? T_W : 1;
    localparam integer ZZ_W = (Z_W > 0) ? Z_W : 1;
    localparam integer B_P  = (OFFSET_W > 0) ? M_W : 0;
    localparam integer T_P  = (T_W > 0) ? M_W + OFFSET_W : 0;
    localparam integer Z_P  = (Z_W > 0) ? W_W - Z_W : 0;
    // x + B; the same shifted; |x + B| rounded; the product; its integer part and fraction; the code.
    localparam integer B_W  = ((IN_W >= BB_W) ? IN_W + 1 : BB_W) + ((OFFSET_W > 0) ? 1 : 0);
    localparam integer L_W  = (B_W + LEFT > U_W) ? B_W + LEFT : U_W + 1;
    localparam integer V_W  = U_W + EXTRA / 2;
    localparam integer P_W  = (V_W + M_W > SHIFT) ? V_W + M_W : SHIFT + 1;
    localparam integer Q_W  = P_W - SHIFT;
    localparam integer END  = (SHIFT > 25) ? 25 : SHIFT;
    localparam integer C_W  = ((Q_W > ZZ_W) ? Q_W : ZZ_W) + 2;

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
            wire [W_W-1:0]  word = word_reg[g*W_W +: W_W];
            wire [BB_W-1:0] b = word[B_P +: BB_W] & {BB_W{OFFSET_W > 0}};
            wire [TT_W-1:0] t = word[T_P +: TT_W] & {TT_W{T_W > 0}};
            wire [ZZ_W-1:0] z = word[Z_P +: ZZ_W] & {ZZ_W{Z_W > 0}};

            // x + B, shifted and saturated, and its magnitude.
            wire signed [IN_W:0]  xs = {(IN_SIGNED != 0) && x[IN_W-1], x};
            reg  signed [B_W-1:0] sum_reg;
            reg  [TT_W-1:0]       t_reg;
            wire [L_W-1:0]        shifted = {{L_W-B_W+1{sum_reg[B_W-1]}}, sum_reg[B_W-2:0]} << t_reg;
            wire                  minus = shifted[L_W-1];
            wire                  above = |(shifted[L_W-1:U_W] ^ {L_W-U_W{minus}});
            reg  [U_W-1:0]        low_reg, size_reg;
            reg                   above_reg, minus_reg;
            wire                  full = above_reg || (minus_reg && (low_reg == {U_W{1'b0}}));
            always @(posedge clk) if (en) begin
                sum_reg   <= {{B_W-IN_W{xs[IN_W]}}, xs[IN_W-1:0]} + {{B_W-BB_W{b[BB_W-1]}}, b};
                t_reg     <= t;
                low_reg   <= shifted[U_W-1:0];
                above_reg <= above;
                minus_reg <= minus;
                size_reg  <= full ? {U_W{1'b1}} : (low_reg ^ {U_W{minus_reg}}) + {{U_W-1{1'b0}}, minus_reg};
            end

            // Round to 24 significant bits.
            wire [V_W-1:0] u;
            if (EXTRA == 0) begin : exact
                assign u = size_reg;
            end else begin : round
                hg_significant #(.W(U_W)) significant (.clk(clk), .en(en), .x(size_reg), .y(u));
            end

            reg  [(3+EXTRA)*M_W-1:0]  m_wait_reg;
            reg  [(DEPTH-2)*ZZ_W-1:0] z_wait_reg;
            reg  [DEPTH-5:0]          minus_wait_reg;
            always @(posedge clk) if (en) begin
                m_wait_reg     <= {m_wait_reg[(2+EXTRA)*M_W-1:0], word[M_W-1:0]};
                z_wait_reg     <= {z_wait_reg[(DEPTH-3)*ZZ_W-1:0], z};
                minus_wait_reg <= {minus_wait_reg[DEPTH-6:0], minus_reg};
            end

            wire [V_W+M_W+1:0]        product;
            hg_multiply #(
                .X_W(V_W + 1), .M_W(M_W + 1), .STYLE(STYLE), .STAGES(STAGES),
                .M({1'b0, CONSTANTS[g*M_W +: M_W]})
            ) multiply (
                .clk(clk), .en(en), .x({1'b0, u}), .m({1'b0, m_wait_reg[(2+EXTRA)*M_W +: M_W]}), .y(product)
            );

            // d as one bit of the fraction's upper END bits; whether any lower bit is set.
            wire [P_W+V_W+M_W+1:0] wide_p = {{P_W{1'b0}}, product};
            wire [Q_W-1:0]         q      = wide_p[SHIFT +: Q_W];
            reg  [Q_W-1:0]         q_reg, whole_reg;
            reg  [END-1:0]         d, d_reg, part_reg;
            reg                    rest_reg, up_reg;
            integer k;
            always @* begin
                d = {END{1'b0}};
                for (k = 0; k <= 22; k = k + 1) if (k + END >= 25 && k <= Q_W)
                    d[k+END-25] = (k == 0) ? q == {Q_W{1'b0}} : ({1'b0, q} >> (k - 1)) == {{Q_W{1'b0}}, 1'b1};
            end
            wire           even = !q_reg[0];
            wire [END+2:0] e    = {2'b00, part_reg, rest_reg} + {{2{even}}, d_reg ^ {END{even}}, even};

            wire            last = minus_wait_reg[DEPTH-5];
            wire [ZZ_W-1:0] zero = z_wait_reg[(DEPTH-3)*ZZ_W +: ZZ_W];
            wire [C_W:0]    value = {{C_W-ZZ_W{zero[ZZ_W-1]}}, zero, 1'b1}
                                  + {{C_W-Q_W{last}}, whole_reg ^ {Q_W{last}}, up_reg ^ last};
            reg  signed [C_W-1:0]         value_reg;
            localparam signed [C_W+OUT_W:0] LOW_S  = {{C_W{LOW[OUT_W]}}, LOW};
            localparam signed [C_W+OUT_W:0] HIGH_S = {{C_W{HIGH[OUT_W]}}, HIGH};
            wire signed [C_W+OUT_W:0]     wide = {{OUT_W+1{value_reg[C_W-1]}}, value_reg};
            reg  [OUT_W-1:0]              code_reg;
            always @(posedge clk) if (en) begin
                {q_reg, part_reg} <= wide_p[SHIFT-END +: Q_W+END];
                rest_reg  <= |(wide_p[SHIFT-1:0] & ~({SHIFT{1'b1}} << (SHIFT - END)));
                d_reg     <= d;
                whole_reg <= q_reg;
                up_reg    <= !e[END+2] && (e[END+1] || e[END]);
                value_reg <= value[C_W:1];
                code_reg  <= (wide < LOW_S)  ? LOW_S[OUT_W-1:0]
                           : (wide > HIGH_S) ? HIGH_S[OUT_W-1:0] : wide[OUT_W-1:0];
            end
            assign m_data[g*OUT_W +: OUT_W] = code_reg;
            wire unused = &{1'b0, xs, word, wide_p, e, value, shifted};
        end
    endgenerate
endmodule
`default_nettype wire
