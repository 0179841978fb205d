// hg_correct_lane: Cell and comparison of a lane of hg_correct.
//
// Purpose     After hg_correct_bucket and before hg_correct_sum: y = x - bucket's start, the bucket's code,
//             the cell's count, and reached = y >= cell's threshold, see hg_correct.
// Parameters  FOLDS, OUT_W, FRACTION, REST, COUNT, DEEP  See hg_correct.
//             BUCKET, CELL, FINE  See SHAPES of hg_correct, for this lane.
//             FILE                Stem of the files FILE_00.mem, FILE_01.mem, FILE_02.mem.
// Latency     The latency of hg_correct without hg_correct_sum, in cycles with en = 1.
// Contract    Port folds holds the channel sets of the beats 0, 1, 2, 3 cycles ago, the first one in the
//             low bits. Inputs are the outputs of hg_correct_bucket, and ABOVE; outputs are the inputs of
//             hg_correct_sum. No register has a reset. Signal names end with the stage of their value.
`default_nettype none
module hg_correct_lane #(
    parameter integer FOLDS    = 2,
    parameter integer OUT_W    = 4,
    parameter integer FRACTION = 1,
    parameter integer REST     = 2,
    parameter integer COUNT    = 3,
    parameter integer BUCKET   = 2,
    parameter integer CELL     = 2,
    parameter integer FINE     = 6,
    parameter integer DEEP     = 0,
    parameter         FILE     = ""
) (
    input  wire                                             clk,
    input  wire                                             en,
    input  wire [4*((FOLDS <= 1) ? 1 : $clog2(FOLDS))-1:0] folds,
    input  wire [FINE+CELL-1:0]                             x,
    input  wire [BUCKET-1:0]                                own,
    input  wire [BUCKET-1:0]                                bucket,
    input  wire [BUCKET-1:0]                                first_bucket,
    input  wire [BUCKET-1:0]                                last_bucket,
    input  wire                                             late,
    input  wire [2:0]                                       side,
    input  wire [COUNT-1:0]                                 above,
    output wire [OUT_W-1:0]                                 base,
    output wire [OUT_W-1:0]                                 more,
    output wire                                             reached,
    output wire                                             beyond,
    output wire [OUT_W-1:0]                                 top
);
    localparam integer FOLD_W = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
    localparam integer X_W = FINE + CELL;           // bits of x that y needs
    localparam integer T_W = FINE + FRACTION;       // bits of this lane's thresholds
    localparam integer Y_W = T_W + CELL;
    localparam integer A_W = OUT_W + Y_W, B_W = 1 + COUNT + T_W;

    // y, relative to the bucket's start.
    wire [Y_W-1:0]    start1;
    wire [X_W-1:0]    x1;
    wire [2:0]        side1;
    wire [Y_W:0]      y1 = {{FRACTION+1{1'b0}}, x1} << FRACTION;
    reg  [Y_W-1:0]    y2_reg;
    reg  [2:0]        side2_reg;
    always @(posedge clk) if (en) {y2_reg, side2_reg} <= {y1[Y_W-1:0] - start1, side1};

    // Count and threshold of the cell.
    wire [CELL-1:0]  cell2 = y2_reg[T_W +: CELL];
    wire [T_W-1:0]   y3, y_low, level;    // y_low of the comparing stage
    wire [2:0]       side3;
    wire [B_W-1:0]   b3;
    wire [OUT_W-1:0] code3;    // the bucket's code (stage 4 if `direct` without FOLDS)
    wire             sure3  = side3[0] || side3[1] || b3[B_W-1];
    wire [COUNT-1:0] count3 = side3[0] ? {COUNT{1'b0}} : side3[1] ? above : b3[T_W +: COUNT];
    wire [OUT_W+COUNT-1:0] sum3 = {{COUNT{1'b0}}, code3} + {{OUT_W{1'b0}}, count3};

    localparam BUCKETS = (FILE == "") ? "" : {FILE, "_00.mem"};
    localparam CELLS   = (FILE == "") ? "" : {FILE, "_01.mem"};
    localparam RESTS   = (FILE == "") ? "" : {FILE, "_02.mem"};
    generate
        if (FOLDS > 1) begin : memory
            (* rom_style = "auto" *) reg [A_W-1:0] a_rom [0:(FOLDS<<BUCKET)-1];
            (* rom_style = "auto" *) reg [B_W-1:0] b_rom [0:(FOLDS<<CELL)-1];
            initial if (FILE != "") $readmemh(BUCKETS, a_rom);
            initial if (FILE != "") $readmemh(CELLS, b_rom);
            reg  [A_W-1:0]   a1_reg;
            reg  [X_W-1:0]   x1_reg;
            reg  [2:0]       side1_reg, side3_reg;
            reg  [OUT_W-1:0] code2_reg, code3_reg;
            reg  [B_W-1:0]   b3_reg;
            reg  [T_W-1:0]   y3_reg;
            always @(posedge clk) if (en) begin
                a1_reg    <= a_rom[{folds[0 +: FOLD_W], bucket}];
                x1_reg    <= x;
                side1_reg <= side;
                code2_reg <= a1_reg[A_W-1 -: OUT_W];
                b3_reg    <= b_rom[{folds[2*FOLD_W +: FOLD_W], cell2}];
                y3_reg    <= y2_reg[T_W-1:0];
                side3_reg <= side2_reg;
                code3_reg <= code2_reg;
            end
            assign {start1, x1, side1} = {a1_reg[Y_W-1:0], x1_reg, side1_reg};
            assign {b3, y3, side3, code3, top} = {b3_reg, y3_reg, side3_reg, code3_reg, {OUT_W{1'b0}}};
        end else begin : tables
            // The start of an input outside FIRST .. LAST does not matter.
            reg  [BUCKET-1:0] bucket2_reg, bucket4_reg;
            wire [BUCKET-1:0] bucket3;
            wire [B_W-1:0]    b2;
            wire [A_W-1:0]    a0, a3, a_last;
            hg_correct_table #(.ADDR_W(BUCKET), .WIDTH(A_W), .FILE(BUCKETS)) start_table (
                .address(own), .word(a0));
            hg_correct_table #(.ADDR_W(BUCKET), .WIDTH(A_W), .FILE(BUCKETS)) code_table (
                .address((REST > 0) ? bucket3 : bucket4_reg), .word(a3));
            hg_correct_table #(.ADDR_W(BUCKET), .WIDTH(A_W), .FILE(BUCKETS)) last_table (
                .address(last_bucket), .word(a_last));
            hg_correct_table #(.ADDR_W(CELL), .WIDTH(B_W), .FILE(CELLS)) cell_table (
                .address(cell2), .word(b2));
            hg_delay #(.WIDTH(B_W + T_W + 3 + BUCKET), .CYCLES(DEEP)) behind (.clk(clk), .en(en),
                .d({b2, y2_reg[T_W-1:0], side2_reg, bucket2_reg}), .q({b3, y3, side3, bucket3}));
            always @(posedge clk) if (en) begin
                bucket2_reg <= bucket;
                bucket4_reg <= (late && side3[0]) ? first_bucket : bucket3;
            end
            wire [OUT_W+COUNT-1:0] last = {{COUNT{1'b0}}, a_last[A_W-1 -: OUT_W]} + {{OUT_W{1'b0}}, above};
            assign top = last[OUT_W-1:0] + 1'b1;
            assign {start1, x1, side1, code3} = {a0[Y_W-1:0], x, side, a3[A_W-1 -: OUT_W]};
            wire unused_tables = &{1'b0, a0, a3, a_last, last};
        end
    endgenerate

    // Compare.
    localparam integer PART = (FOLDS == 1 && REST == 0 && DEEP == 0 && CELL <= 3) ? 6 - CELL : 1;
    wire             passed;
    hg_correct_reach #(.WIDTH(T_W), .PART(PART)) reach (.y(y_low), .level(level), .reached(passed));
    reg              reached_reg;
    assign reached = reached_reg;
    generate
        if (REST > 0) begin : finer
            reg  [OUT_W-1:0] sum4_reg, sum5_reg;
            reg  [Y_W-1:0]   y4_reg;
            reg              sure4_reg;
            wire [REST-1:0]  rest4;
            wire [B_W-1:0]   b4;
            wire [T_W+REST-1:0] fine4 = {{T_W{1'b0}}, rest4} << FRACTION;
            assign {y_low, level} = {y4_reg[T_W-1:0], b4[T_W-1:0] | fine4[T_W-1:0]};
            assign {base, more, beyond} = {sum5_reg, {OUT_W{1'b0}}, 1'b0};
            always @(posedge clk) if (en) begin
                {sum5_reg, sum4_reg} <= {sum4_reg, sum3[OUT_W-1:0]};
                {sure4_reg, y4_reg}  <= {sure3, cell2, y3};
                reached_reg          <= sure4_reg || passed;
            end
            if (FOLDS > 1) begin : memory
                (* rom_style = "auto" *) reg [REST-1:0] e_rom [0:(FOLDS<<OUT_W)-1];
                initial if (FILE != "") $readmemh(RESTS, e_rom);
                reg  [REST-1:0] rest4_reg;
                reg  [B_W-1:0]  b4_reg;
                always @(posedge clk) if (en) begin
                    rest4_reg <= e_rom[{folds[3*FOLD_W +: FOLD_W], sum3[OUT_W-1:0]}];
                    b4_reg    <= b3;
                end
                assign {rest4, b4} = {rest4_reg, b4_reg};
            end else begin : tables
                hg_correct_table #(.ADDR_W(OUT_W), .WIDTH(REST), .FILE(RESTS)) rest_table (
                    .address(sum4_reg), .word(rest4));
                hg_correct_table #(.ADDR_W(CELL), .WIDTH(B_W), .FILE(CELLS)) cell_table (
                    .address(y4_reg[T_W +: CELL]), .word(b4));
            end
            wire unused_finer = &{1'b0, b4, fine4, y4_reg};
        end else begin : direct
            reg [OUT_W-1:0] sum4_reg;
            reg [COUNT-1:0] count4_reg;
            wire [OUT_W+COUNT-1:0] count4 = {{OUT_W{1'b0}}, count4_reg};
            reg             beyond4_reg;
            assign {y_low, level, beyond} = {y3, b3[T_W-1:0], beyond4_reg};
            assign {base, more} = (FOLDS > 1) ? {sum4_reg, {OUT_W{1'b0}}} : {code3, count4[OUT_W-1:0]};
            always @(posedge clk) if (en) begin
                {sum4_reg, count4_reg}    <= {sum3[OUT_W-1:0], count3};
                {reached_reg, beyond4_reg} <= {sure3 || passed, side3[2]};
            end
            wire unused_direct = &{1'b0, count4};
        end
    endgenerate
    wire unused = &{1'b0, folds, own, first_bucket, last_bucket, late, b3, y1, sum3, side3};
endmodule
`default_nettype wire
