// hg_pool_tree: Largest element or sum of whole windows, channel by channel.
//
// Purpose     Follows hg_unfold. For every beat of TAPS taps of LANES elements, emits LANES results over
//             the taps, element by element.
// Parameters  LANES          Elements of a tap.
//             TAPS           Taps of a window.
//             X_W, X_SIGNED  Codes; X_SIGNED = 1: two's complement.
//             SUM            0: maximum; 1: sum.
//             ACC_W          Bits of a result, at least X_W. The caller proves that every sum fits.
// Latency     ceil(log2(TAPS)), at least 1, enabled cycles (m_ready || !m_valid). One beat per cycle.
// Contract    Exact (sums modulo 2^ACC_W). Results have the sign of the codes. Tap t, lane g of s_data is
//             at bit (t * LANES + g) * X_W.
`default_nettype none
module hg_pool_tree #(
    parameter integer LANES    = 2,
    parameter integer TAPS     = 9,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer SUM      = 0,
    parameter integer ACC_W    = 4
) (
    input  wire                      clk,
    input  wire                      rst,
    input  wire [TAPS*LANES*X_W-1:0] s_data,
    input  wire                      s_valid,
    output wire                      s_ready,
    output wire [LANES*ACC_W-1:0]    m_data,
    output wire                      m_valid,
    input  wire                      m_ready
);
    localparam integer LEVELS = $clog2(TAPS);
    localparam integer STAGES = (LEVELS == 0) ? 1 : LEVELS;
    localparam integer OUT_W  = (SUM != 0) ? X_W + LEVELS : X_W;

    wire              en = m_ready || !m_valid;
    reg  [STAGES-1:0] valid_reg;
    wire [STAGES:0]   valid_in = {valid_reg, s_valid};
    always @(posedge clk) begin
        if (en)  valid_reg <= valid_in[STAGES-1:0];
        if (rst) valid_reg <= {STAGES{1'b0}};
    end
    assign s_ready = en;
    assign m_valid = valid_in[STAGES];

    genvar g, t, l, i;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [TAPS*X_W-1:0] x;
            wire [OUT_W-1:0]    found;
            for (t = 0; t < TAPS; t = t + 1) begin : tap
                assign x[t*X_W +: X_W] = s_data[(t*LANES+g)*X_W +: X_W];
            end
            if (TAPS == 1) begin : one
                reg [X_W-1:0] x_reg;
                always @(posedge clk) if (en) x_reg <= x;
                assign found = x_reg;
            end else if (SUM != 0) begin : sum
                hg_adder_tree #(.N(TAPS), .IN_W(X_W), .SIGNED(X_SIGNED), .EVERY(1)) tree (
                    .clk(clk), .en(en), .terms(x), .sum(found)
                );
            end else begin : maximum
                // Level l holds ceil(TAPS / 2^l) codes.
                for (l = 0; l <= LEVELS; l = l + 1) begin : level
                    localparam integer COUNT = (TAPS + (1 << l) - 1) >> l;
                    wire [COUNT*X_W-1:0] value;
                    if (l == 0) begin : leaves
                        assign value = x;
                    end else begin : larger
                        localparam integer FROM = (TAPS + (1 << (l - 1)) - 1) >> (l - 1);
                        reg [COUNT*X_W-1:0] value_reg;
                        assign value = value_reg;
                        for (i = 0; i < COUNT; i = i + 1) begin : pick
                            wire [X_W-1:0] a = level[l-1].value[2*i*X_W +: X_W];
                            if (2*i + 1 < FROM) begin : pair
                                wire [X_W-1:0] b = level[l-1].value[(2*i+1)*X_W +: X_W];
                                wire above = (X_SIGNED != 0) ? $signed(b) > $signed(a) : b > a;
                                always @(posedge clk) if (en) value_reg[i*X_W +: X_W] <= above ? b : a;
                            end else begin : single
                                always @(posedge clk) if (en) value_reg[i*X_W +: X_W] <= a;
                            end
                        end
                    end
                end
                assign found = level[LEVELS].value;
            end
            wire [OUT_W+ACC_W-1:0] wide = {{ACC_W{(X_SIGNED != 0) && found[OUT_W-1]}}, found};
            assign m_data[g*ACC_W +: ACC_W] = wide[ACC_W-1:0];
            wire unused_lane = &{1'b0, wide};
        end
    endgenerate
endmodule
`default_nettype wire
