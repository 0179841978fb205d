// hg_reduce: Largest element or sum of every window, channel by channel, for adjacent windows.
//
// Purpose     Pools whose windows neither overlap nor leave gaps, including pools over the whole image. It
//             stores no pixels, but one partial result per window of a row of windows (of the current
//             window, if KH is 1). Results have the order of hg_pool: windows in raster order, for each f <
//             FOLDS a beat of LANES results.
// Parameters  LANES          Elements of a word.
//             X_W, X_SIGNED  Codes; X_SIGNED = 1: two's complement.
//             SUM            0: maximum; 1: sum.
//             ACC_W          Bits of a result, at least X_W. The caller proves that every sum fits.
//             HEIGHT, WIDTH  Pixels of an image, in raster order. A pixel is FOLDS words.
//             KH, KW         Pixels of a window. An image has as many windows as fit. Pixels beyond them
//                            are consumed and dropped.
//             FOLDS          Words of a pixel.
// Latency     2 enabled cycles (m_ready || !m_valid) from the word that completes a result to its beat. One
//             word per cycle.
// Contract    Exact (sums modulo 2^ACC_W). Results have the sign of the codes. Images follow each other
//             without gaps.
`default_nettype none
module hg_reduce #(
    parameter integer LANES    = 2,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer SUM      = 0,
    parameter integer ACC_W    = 4,
    parameter integer HEIGHT   = 5,
    parameter integer WIDTH    = 7,
    parameter integer KH       = 2,
    parameter integer KW       = 2,
    parameter integer FOLDS    = 2
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*X_W-1:0]   s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*ACC_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer OUT_H = HEIGHT / KH, OUT_W = WIDTH / KW;  // windows
    localparam integer WORDS = (KH == 1) ? FOLDS : OUT_W * FOLDS;

    reg  m_valid_reg;
    wire en = m_ready || !m_valid_reg;
    wire take = en && s_valid;
    assign s_ready = en;
    assign m_valid = m_valid_reg;

    // Position of the accepted word.
    wire pixel;  // the word is the last one of its pixel
    wire keep_x, first_x, last_x, end_x, keep_y, first_y, last_y, end_y;

    hg_loop #(.N(FOLDS)) folds (.clk(clk), .rst(rst), .step(take), .last(pixel));
    hg_reduce_walk #(.SIZE(WIDTH), .KERNEL(KW), .COUNT(OUT_W)) columns (
        .clk(clk), .rst(rst), .step(take && pixel),
        .keep(keep_x), .first(first_x), .last(last_x), .end_of(end_x)
    );
    hg_reduce_walk #(.SIZE(HEIGHT), .KERNEL(KH), .COUNT(OUT_H)) rows (
        .clk(clk), .rst(rst), .step(take && pixel && end_x),
        .keep(keep_y), .first(first_y), .last(last_y), .end_of(end_y)
    );

    // Combine the word with the partial result. The new result goes to memory and output alike.
    reg                    valid_reg, first_reg, last_reg;
    reg  [LANES*X_W-1:0]   x_reg;
    reg  [LANES*ACC_W-1:0] result_reg;
    wire [LANES*ACC_W-1:0] so_far, result;
    assign m_data = result_reg;
    always @(posedge clk) begin
        if (en) begin
            x_reg       <= s_data;
            first_reg   <= first_x && first_y;
            last_reg    <= last_x && last_y;
            valid_reg   <= s_valid && keep_x && keep_y;
            m_valid_reg <= valid_reg && last_reg;
            if (valid_reg) result_reg <= result;
        end
        if (rst) begin
            valid_reg   <= 1'b0;
            m_valid_reg <= 1'b0;
        end
    end

    generate
        if (WORDS == 1) begin : single
            assign so_far = result_reg;
        end else begin : several
            localparam integer AW = $clog2(WORDS);
            localparam [AW-1:0] BACK = FOLDS[AW-1:0] - 1'b1;
            reg [LANES*ACC_W-1:0] mem [0:WORDS-1];
            reg [LANES*ACC_W-1:0] word_reg;
            reg [AW-1:0]          addr_reg, write_reg;
            reg                   past_reg;  // the word being read is being written in this cycle
            assign so_far = past_reg ? result_reg : word_reg;
            always @(posedge clk) begin
                if (en) begin
                    word_reg  <= mem[addr_reg];
                    write_reg <= addr_reg;
                    past_reg  <= valid_reg && write_reg == addr_reg;
                    if (valid_reg) mem[write_reg] <= result;
                end
                if (take) begin
                    if (!pixel)                      addr_reg <= addr_reg + 1'b1;
                    else if (end_x)                  addr_reg <= {AW{1'b0}};
                    else if ((KH == 1) || !last_x)   addr_reg <= addr_reg - BACK;
                    else                             addr_reg <= addr_reg + 1'b1;
                end
                if (rst) addr_reg <= {AW{1'b0}};
            end
        end
    endgenerate

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [ACC_W+X_W-1:0] wide = {{ACC_W{(X_SIGNED != 0) && x_reg[g*X_W+X_W-1]}}, x_reg[g*X_W +: X_W]};
            wire [ACC_W-1:0]     code = wide[ACC_W-1:0];
            wire [ACC_W-1:0]     acc  = so_far[g*ACC_W +: ACC_W];
            if (SUM != 0) begin : sum
                assign result[g*ACC_W +: ACC_W] = (first_reg ? {ACC_W{1'b0}} : acc) + code;
            end else begin : maximum
                wire above = (X_SIGNED != 0) ? $signed(code) > $signed(acc) : code > acc;
                assign result[g*ACC_W +: ACC_W] = (first_reg || above) ? code : acc;
            end
            wire unused_lane = &{1'b0, wide};
        end
    endgenerate
    wire unused = &{1'b0, end_y};
endmodule
`default_nettype wire
