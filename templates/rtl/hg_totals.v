// hg_totals: Sums over the words of a reduction.
//
// Purpose     Accumulators of the modules hg_mac_*, with the control of the pipeline before them.
// Parameters  PE        Rows.
//             SUM_W     Bits of the sum of a word.
//             ACC_W     Bits of an accumulator.
//             STAGES    Enabled cycles from x_valid and x_last to the sums of that word.
//             COUNTS    1: sums are counts as hg_agreements emits them; 0: they are two's complement.
// Latency     STAGES + 1 enabled cycles, from a reduction's last word.
// Contract    Exact modulo 2^ACC_W. Registers advance on en; en_totals equals en. Output m_free is a
//             duplicate register of !m_valid for low-fan-out enables upstream.
`default_nettype none
module hg_totals #(
    parameter integer PE     = 2,
    parameter integer SUM_W  = 9,
    parameter integer ACC_W  = 12,
    parameter integer STAGES = 4,
    parameter integer COUNTS = 0
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                en,
    input  wire                en_totals,
    input  wire                x_valid,
    input  wire                x_last,
    input  wire [PE*SUM_W-1:0] sums,
    output wire [PE*ACC_W-1:0] m_data,
    output wire                m_valid,
    output wire                m_free
);
    // Control flags of the sum that leaves the pipeline.
    reg [STAGES-1:0] valid_reg, last_reg;
    wire [STAGES:0]  valid_in = {valid_reg, x_valid}, last_in = {last_reg, x_last};
    reg              first_reg, m_valid_reg, m_free_reg;
    wire             done = valid_reg[STAGES-1] && last_reg[STAGES-1];
    always @(posedge clk) begin
        if (en) begin
            valid_reg <= valid_in[STAGES-1:0];
            last_reg  <= last_in[STAGES-1:0];
            {m_valid_reg, m_free_reg} <= {done, !done};
        end
        if (en_totals && valid_reg[STAGES-1]) first_reg <= last_reg[STAGES-1];
        if (rst) begin
            valid_reg <= {STAGES{1'b0}};
            {m_valid_reg, m_free_reg, first_reg} <= 3'b011;
        end
    end
    assign {m_valid, m_free} = {m_valid_reg, m_free_reg};
    wire unused = &{1'b0, valid_in[STAGES], last_in[STAGES]};

    // The lowest bit of a count is a position, added as the carry of the sum.
    localparam integer LOW = (COUNTS != 0) ? 1 : 0;
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : row
            wire [SUM_W-1:0]       sum = sums[p*SUM_W +: SUM_W];
            wire [SUM_W+ACC_W-1:0] extended = {{ACC_W+LOW{(COUNTS == 0) && sum[SUM_W-1]}}, sum[SUM_W-1:LOW]};
            wire [ACC_W:0]         one = {{ACC_W{1'b0}}, (COUNTS != 0) && sum[0]};
            reg  [ACC_W-1:0]       acc_reg;
            always @(posedge clk) if (en_totals && valid_reg[STAGES-1])
                acc_reg <= (first_reg ? {ACC_W{1'b0}} : acc_reg) + extended[ACC_W-1:0] + one[ACC_W-1:0];
            assign m_data[p*ACC_W +: ACC_W] = acc_reg;
            wire unused_row = &{1'b0, extended, one};
        end
    endgenerate
endmodule
`default_nettype wire
