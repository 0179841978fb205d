// hg_compare: Monotone integer function: compares with all thresholds at once.
//
// Purpose     code = OFFSET + number of thresholds T[k] with x >= T[k], per channel.
// Parameters  LANES      Elements of a beat.
//             FOLDS      Sets of channel parameters; beat i uses set i mod FOLDS.
//             IN_W       Bits of x.
//             IN_SIGNED  1: x is two's complement; 0: unsigned.
//             STEPS      Thresholds of a channel.
//             T_W        Bits of a threshold, at least IN_W; two's complement if x is.
//             OUT_W      Bits of the code (low bits of the sum).
//             OFFSET     Code below the first threshold (its low bits).
//             FALLING    1: a set top bit of a threshold word means that the channel falls. The comparison
//                        is then x < T[k]. 0: there is no such bit.
//             FILE       $readmemh file of FOLDS words of LANES * STEPS words of T_W + FALLING bits, T[0]
//                        of lane 0 in the low bits.
// Latency     2 cycles, one beat per cycle.
// Contract    T[0] is the first threshold in the order of the codes. Thresholds ascend; those of a falling
//             channel descend. A single set (FOLDS = 1) gives comparisons with constants.
`default_nettype none
module hg_compare #(
    parameter integer     LANES     = 2,
    parameter integer     FOLDS     = 2,
    parameter integer     IN_W      = 8,
    parameter integer     IN_SIGNED = 1,
    parameter integer     STEPS     = 3,
    parameter integer     T_W       = 9,
    parameter integer     OUT_W     = 3,
    parameter integer     FALLING   = 0,
    parameter [OUT_W-1:0] OFFSET    = 0,
    parameter             FILE      = ""
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
    localparam integer FW = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
    localparam integer W_W = T_W + FALLING;
    localparam integer L_W = STEPS * W_W;

    reg [1:0] valid_reg;
    wire      en = m_ready || !valid_reg[1];

    assign s_ready = en;
    assign m_valid = valid_reg[1];

    always @(posedge clk) begin
        if (en) valid_reg <= {valid_reg[0], s_valid};
        if (rst) valid_reg <= 2'b00;
    end

    (* rom_style = "auto" *) reg [LANES*L_W-1:0] rom [0:FOLDS-1];
    initial if (FILE != "") $readmemh(FILE, rom);
    wire [LANES*L_W-1:0] table_word;
    generate
        if (FOLDS == 1) begin : constant
            assign table_word = rom[0];
        end else begin : folded
            reg [LANES*L_W-1:0]  word_reg;
            wire [FW-1:0] unused_fold, fold_next;
            hg_index #(.N(FOLDS)) turn (
                .clk(clk), .rst(rst), .step(s_valid && en), .index(unused_fold), .next(fold_next)
            );
            always @(posedge clk) if ((s_valid && en) || rst) word_reg <= rom[fold_next];
            assign table_word = word_reg;
        end
    endgenerate

    // Bit by bit: synthesis maps >= to an adder before it knows the words of a memory.
    function at_least(input [T_W-1:0] x, input [T_W-1:0] t);
        integer i;
        begin
            at_least = 1'b1;
            for (i = 0; i < T_W; i = i + 1)
                if (t[i]) at_least = x[i] && at_least;
                else at_least = x[i] || at_least;
        end
    endfunction

    // The comparisons are ones followed by zeros. A bit of the code is therefore the exclusive or of the
    // comparisons at which it changes.
    function [OUT_W-1:0] count(input [STEPS-1:0] reached);
        integer i;
        reg [OUT_W-1:0] code, next;
        begin
            code  = OFFSET;
            count = code;
            for (i = 0; i < STEPS; i = i + 1) begin
                next  = code + 1'b1;
                count = count ^ ((code ^ next) & {OUT_W{reached[i]}});
                code  = next;
            end
        end
    endfunction

    localparam [T_W-1:0] SIGN = {(IN_SIGNED != 0), {T_W-1{1'b0}}};   // inverted sign bit of two's complement
    genvar g, k;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [IN_W-1:0]  data = s_data[g*IN_W +: IN_W];
            wire [T_W:0]     wide = {{T_W-IN_W+1{(IN_SIGNED != 0) && data[IN_W-1]}}, data};
            wire [T_W-1:0]   x    = wide[T_W-1:0] ^ SIGN;
            reg  [STEPS-1:0] reached_reg;
            reg  [OUT_W-1:0] code_reg;
            for (k = 0; k < STEPS; k = k + 1) begin : step
                wire [W_W-1:0] word = table_word[g*L_W + k*W_W +: W_W];
                wire [T_W-1:0] t    = word[T_W-1:0] ^ SIGN;
                wire reached = (FOLDS == 1) ? at_least(x, t) : (x >= t);
                always @(posedge clk) if (en) reached_reg[k] <= reached ^ ((FALLING != 0) && word[W_W-1]);
            end
            always @(posedge clk) if (en) code_reg <= count(reached_reg);
            assign m_data[g*OUT_W +: OUT_W] = code_reg;
            wire unused_lane = &{1'b0, wide};
        end
    endgenerate
endmodule
`default_nettype wire
