// hg_rows_max: Distance of each element of a row to the largest one.
//
// Purpose     First half of a softmax of integers.
// Parameters  LANES      Elements of a beat.
//             BEATS      Beats of a row.
//             IN_W       Bits of an element.
//             IN_SIGNED  1: elements are two's complement; 0: unsigned.
//             OUT_W      Bits of a distance, which is not negative. The caller proves that it fits.
// Latency     2 cycles after a beat is read, see hg_rows_buffer with LAG = 1. One beat per cycle.
// Contract    m = largest element of the row - s, in the order of s.
`default_nettype none
module hg_rows_max #(
    parameter integer LANES     = 2,
    parameter integer BEATS     = 4,
    parameter integer IN_W      = 8,
    parameter integer IN_SIGNED = 1,
    parameter integer OUT_W     = 8
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
    localparam integer D_W = ((OUT_W > IN_W) ? OUT_W : IN_W) + 1;

    function greater(input [IN_W-1:0] a, input [IN_W-1:0] b);
        greater = $signed({(IN_SIGNED != 0) && a[IN_W-1], a})
                > $signed({(IN_SIGNED != 0) && b[IN_W-1], b});
    endfunction

    wire                  take, first, last, issue, valid;
    wire [LANES*IN_W-1:0] data;
    wire [IN_W-1:0]       most;
    reg                   valid_reg, take_reg, first_reg;
    reg  [IN_W-1:0]       top, top_reg, best_reg;
    integer               k;

    // The largest element of a beat, then of the beats of the row so far.
    always @* begin
        top = s_data[IN_W-1:0];
        for (k = 1; k < LANES; k = k + 1)
            if (greater(s_data[k*IN_W +: IN_W], top)) top = s_data[k*IN_W +: IN_W];
    end
    wire [IN_W-1:0] best = (first_reg || greater(top_reg, best_reg)) ? top_reg : best_reg;
    always @(posedge clk) begin
        top_reg   <= top;
        first_reg <= first;
        take_reg  <= take && !rst;
        if (take_reg) best_reg <= best;
    end

    wire en = m_ready || !valid_reg;
    hg_rows_buffer #(.WIDTH(LANES*IN_W), .BLOCK(BEATS), .STAT_W(IN_W), .LAG(1)) rows (
        .clk(clk), .rst(rst), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready), .take(take),
        .first(first), .last(last), .stat(best), .en(en), .issue(issue), .m_data(data), .m_stat(most),
        .m_valid(valid));

    assign m_valid = valid_reg;
    always @(posedge clk) begin
        if (en) valid_reg <= valid;
        if (rst) valid_reg <= 1'b0;
    end
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [IN_W-1:0] x = data[g*IN_W +: IN_W];
            wire [D_W-1:0]  d = {{D_W-IN_W{(IN_SIGNED != 0) && most[IN_W-1]}}, most}
                              - {{D_W-IN_W{(IN_SIGNED != 0) && x[IN_W-1]}}, x};
            reg [OUT_W-1:0] d_reg;
            always @(posedge clk) if (en) d_reg <= d[OUT_W-1:0];
            assign m_data[g*OUT_W +: OUT_W] = d_reg;
            wire unused_lane = &{1'b0, d};
        end
    endgenerate
    wire unused = &{1'b0, last, issue};
endmodule
`default_nettype wire
