// hg_pool: Largest element or sum of every window, channel by channel.
//
// Purpose     For every input window (see hg_window) and g < GROUPS, emits a beat of LANES results over the
//             kernel, element by element.
// Parameters  LANES           Elements of a word.
//             HEIGHT, WIDTH, KH, KW, SH, SW, DH, DW, PT, PL, OUT_H, OUT_W, GROUPS, DEPTH, PAD: See
//                             hg_window. A word is LANES codes of X_W bits, a pixel GROUPS words.
//             X_W, X_SIGNED   Codes; X_SIGNED = 1: two's complement.
//             SUM             0: maximum; 1: sum.
//             ACC_W           Bits of a result, at least X_W. The caller proves that every sum fits.
// Latency     3 enabled cycles (m_ready || !m_valid) from the issue of the last word of a result
//             (hg_window) to its beat. One word per cycle.
// Contract    Exact (sums modulo 2^ACC_W). Results have the sign of the codes.
`default_nettype none
module hg_pool #(
    parameter integer LANES    = 2,
    parameter integer HEIGHT   = 4,
    parameter integer WIDTH    = 5,
    parameter integer KH       = 3,
    parameter integer KW       = 3,
    parameter integer SH       = 1,
    parameter integer SW       = 1,
    parameter integer DH       = 1,
    parameter integer DW       = 1,
    parameter integer PT       = 1,
    parameter integer PL       = 1,
    parameter integer OUT_H    = 4,
    parameter integer OUT_W    = 5,
    parameter integer GROUPS   = 2,
    parameter integer DEPTH    = 26,
    parameter integer X_W      = 4,
    parameter [X_W-1:0] PAD    = 0,
    parameter integer X_SIGNED = 0,
    parameter integer SUM      = 0,
    parameter integer ACC_W    = 4
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
    reg                  first_reg, m_valid_reg;
    wire                 en = m_ready || !m_valid_reg;
    wire [LANES*X_W-1:0] x;
    wire                 next_valid, x_valid, x_last;

    hg_window #(
        .UNIT(X_W), .LANES(LANES), .HEIGHT(HEIGHT), .WIDTH(WIDTH), .KH(KH), .KW(KW), .SH(SH), .SW(SW),
        .DH(DH), .DW(DW), .PT(PT), .PL(PL), .OUT_H(OUT_H), .OUT_W(OUT_W), .GROUPS(GROUPS),
        .FOLDS(1), .REPEAT(1), .DEPTH(DEPTH), .PAD(PAD)
    ) window (
        .clk(clk), .rst(rst), .en(en), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready),
        .next_valid(next_valid), .x(x), .x_valid(x_valid), .x_last(x_last)
    );

    always @(posedge clk) begin
        if (en) begin
            m_valid_reg <= x_valid && x_last;
            if (x_valid) first_reg <= x_last;
        end
        if (rst) begin
            m_valid_reg <= 1'b0;
            first_reg   <= 1'b1;
        end
    end
    assign m_valid = m_valid_reg;
    wire unused = &{1'b0, next_valid};

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [ACC_W+X_W-1:0] wide = {{ACC_W{(X_SIGNED != 0) && x[g*X_W+X_W-1]}}, x[g*X_W +: X_W]};
            wire [ACC_W-1:0]     code = wide[ACC_W-1:0];
            reg  [ACC_W-1:0]     acc_reg;
            if (SUM != 0) begin : sum
                always @(posedge clk)
                    if (en && x_valid) acc_reg <= (first_reg ? {ACC_W{1'b0}} : acc_reg) + code;
            end else begin : maximum
                wire above = (X_SIGNED != 0) ? $signed(code) > $signed(acc_reg) : code > acc_reg;
                always @(posedge clk)
                    if (en && x_valid && (first_reg || above)) acc_reg <= code;
            end
            assign m_data[g*ACC_W +: ACC_W] = acc_reg;
            wire unused_lane = &{1'b0, wide};
        end
    endgenerate
endmodule
`default_nettype wire
