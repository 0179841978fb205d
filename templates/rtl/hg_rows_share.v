// hg_rows_share: Table values divided by the sum of other table values over the row.
//
// Purpose     Second half of a softmax of integers.
// Parameters  LANES     Elements of a beat.
//             BEATS     Beats of a row.
//             IN_W      Bits of an element d, unsigned.
//             WEIGHT_W  Bits of a weight.
//             NUMBER_W  Bits of a number.
//             SUM_W     Bits of the sum, more than WEIGHT_W. The caller proves that it fits.
//             OUT_W     Bits of a quotient. The caller proves that it fits.
//             FILE      Stem: FILE_0000.mem has 2^IN_W weights, FILE_0001.mem as many numbers.
// Latency     2 + OUT_W cycles after a beat is read, see hg_rows_buffer with LAG = 2. One beat per cycle.
// Contract    m = number[d] / (sum of weight[d] over the row), rounded down, in the order of s. No sum is
//             0.
`default_nettype none
module hg_rows_share #(
    parameter integer LANES    = 2,
    parameter integer BEATS    = 4,
    parameter integer IN_W     = 8,
    parameter integer WEIGHT_W = 9,
    parameter integer NUMBER_W = 16,
    parameter integer SUM_W    = 12,
    parameter integer OUT_W    = 8,
    parameter         FILE     = ""
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
    localparam integer WORDS = 1 << IN_W;
    localparam integer W     = OUT_W + SUM_W;
    localparam integer T_W   = ((NUMBER_W > W) ? NUMBER_W : W) + 1;

    wire                      take, first, last, issue, valid;
    wire [LANES*IN_W-1:0]     data;
    wire [SUM_W-1:0]          total;
    wire [LANES*WEIGHT_W-1:0] weights;
    wire [LANES*W-1:0]        numbers;
    reg  [OUT_W:0]            valid_reg;
    reg                       take1_reg, first1_reg, take2_reg, first2_reg;
    reg  [SUM_W-1:0]          beat, beat_reg, sum_reg, total_reg;
    integer                   k;

    always @* begin
        beat = {SUM_W{1'b0}};
        for (k = 0; k < LANES; k = k + 1)
            beat = beat + {{SUM_W-WEIGHT_W{1'b0}}, weights[k*WEIGHT_W +: WEIGHT_W]};
    end
    wire [SUM_W-1:0] sum = first2_reg ? beat_reg : sum_reg + beat_reg;
    always @(posedge clk) begin
        first1_reg <= first;
        first2_reg <= first1_reg;
        take1_reg  <= take && !rst;
        take2_reg  <= take1_reg && !rst;
        beat_reg   <= beat;
        if (take2_reg) sum_reg <= sum;
    end

    wire en = m_ready || !m_valid;
    hg_rows_buffer #(.WIDTH(LANES*IN_W), .BLOCK(BEATS), .STAT_W(SUM_W), .LAG(2)) rows (
        .clk(clk), .rst(rst), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready), .take(take),
        .first(first), .last(last), .stat(sum), .en(en), .issue(issue), .m_data(data), .m_stat(total),
        .m_valid(valid));

    assign m_valid = valid_reg[OUT_W];
    always @(posedge clk) begin
        if (en) begin
            valid_reg <= {valid_reg[OUT_W-1:0], valid};
            total_reg <= total;
        end
        if (rst) valid_reg <= {OUT_W+1{1'b0}};
    end
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            (* rom_style = "auto" *) reg [WEIGHT_W-1:0] weight [0:WORDS-1];
            (* rom_style = "auto" *) reg [NUMBER_W-1:0] number [0:WORDS-1];
            initial if (FILE != "") begin
                $readmemh({FILE, "_0000.mem"}, weight);
                $readmemh({FILE, "_0001.mem"}, number);
            end
            reg [WEIGHT_W-1:0] weight_reg;
            reg [NUMBER_W-1:0] number_reg;
            always @(posedge clk) begin
                weight_reg <= weight[s_data[g*IN_W +: IN_W]];
                if (en) number_reg <= number[data[g*IN_W +: IN_W]];
            end
            wire [T_W-1:0] wide = {{T_W-NUMBER_W{1'b0}}, number_reg};
            assign weights[g*WEIGHT_W +: WEIGHT_W] = weight_reg;
            assign numbers[g*W +: W] = wide[W-1:0];
            wire unused_lane = &{1'b0, wide};
        end
    endgenerate
    hg_rows_divide #(.LANES(LANES), .BITS(OUT_W), .DEN_W(SUM_W)) divide (
        .clk(clk), .en(en), .num(numbers), .den(total_reg), .quotient(m_data));
    wire unused = &{1'b0, last, issue};
endmodule
`default_nettype wire
