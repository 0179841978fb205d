// hg_norm_root: the reciprocal square root of each moment, rounded to 24 bits.
//
// Purpose     what the elements of a row are multiplied by: 1 / sqrt of an integer and a constant. With
//             W = moment * FACTOR + ADDEND, k steps give floor(sqrt(START * 4^k / W)), one bit a step, until
//             that has 25 bits; then significand * 2^(1-k) is sqrt(START / W) rounded to nearest even.
// Parameters  M_W     bits of a moment (unsigned)
//             S_W     bits of the sum, which goes past
//             E_W     bits of the number of steps
//             W_W     bits of W
//             STEPS   after so many the root of the largest W has 25 bits
//             SERIAL  1: the product with FACTOR is made bit by bit, in M_W cycles; 0: FACTOR is 2^SHIFT
//             FACTOR, SHIFT, ADDEND, START  constants; START < ADDEND
//             WAYS    rows under way
// Latency     (SERIAL ? M_W : 0) + STEPS + 4 cycles; row k is taken when row k - WAYS has left in a cycle
//             before
// Contract    m = {steps, significand, sum}. Rows leave in order; s_ready and m_valid are registers behind a
//             multiplexer. START * 4^STEPS >= 2^48 * W for all W.
`default_nettype none
module hg_norm_root #(
    parameter integer         M_W    = 12,
    parameter integer         S_W    = 7,
    parameter integer         E_W    = 6,
    parameter integer         W_W    = 14,
    parameter integer         STEPS  = 33,
    parameter integer         SERIAL = 0,
    parameter integer         SHIFT  = 0,
    parameter [W_W-1:0]       FACTOR = 1,
    parameter [W_W-1:0]       ADDEND = 5,
    parameter [W_W-1:0]       START  = 4,
    parameter integer         WAYS   = 2
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [M_W+S_W-1:0]    s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire [E_W+24+S_W-1:0] m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
    localparam integer N_W = (WAYS <= 1) ? 1 : $clog2(WAYS);
    localparam [N_W-1:0] LAST = WAYS[N_W-1:0] - 1'b1;

    reg  [N_W-1:0]              in_reg, out_reg;
    reg  [WAYS-1:0]             full_reg, done_reg;
    wire [WAYS-1:0]             done;
    wire [WAYS*(E_W+24+S_W)-1:0] results;
    wire push = s_valid && s_ready;
    wire pop  = m_valid && m_ready;

    assign s_ready = !full_reg[in_reg];
    assign m_valid = done_reg[out_reg] || done[out_reg];
    assign m_data  = results[out_reg*(E_W+24+S_W) +: E_W+24+S_W];

    always @(posedge clk) begin
        done_reg <= done_reg | done;
        if (push) begin
            full_reg[in_reg] <= 1'b1;
            in_reg           <= (in_reg == LAST) ? {N_W{1'b0}} : in_reg + 1'b1;
        end
        if (pop) begin
            full_reg[out_reg] <= 1'b0;
            done_reg[out_reg] <= 1'b0;
            out_reg           <= (out_reg == LAST) ? {N_W{1'b0}} : out_reg + 1'b1;
        end
        if (rst) begin
            full_reg <= {WAYS{1'b0}};
            done_reg <= {WAYS{1'b0}};
            in_reg   <= {N_W{1'b0}};
            out_reg  <= {N_W{1'b0}};
        end
    end

    genvar g;
    generate
        for (g = 0; g < WAYS; g = g + 1) begin : way
            reg  [S_W-1:0] sum_reg;
            wire [E_W-1:0] steps;
            wire [23:0]    significand;
            wire           load = push && in_reg == g[N_W-1:0];
            always @(posedge clk) if (load) sum_reg <= s_data[S_W-1:0];
            hg_norm_root_way #(
                .M_W(M_W), .E_W(E_W), .W_W(W_W), .STEPS(STEPS), .SERIAL(SERIAL), .SHIFT(SHIFT),
                .FACTOR(FACTOR), .ADDEND(ADDEND), .START(START)
            ) root (
                .clk(clk), .rst(rst), .load(load), .moment(s_data[M_W+S_W-1:S_W]), .done(done[g]),
                .significand(significand), .steps(steps)
            );
            assign results[g*(E_W+24+S_W) +: E_W+24+S_W] = {steps, significand, sum_reg};
        end
    endgenerate
endmodule
`default_nettype wire
