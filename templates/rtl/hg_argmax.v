// hg_argmax: Position of the largest element of a vector.
//
// Purpose     Classification output.
// Parameters  LANES      Elements of a beat.
//             BEATS      Beats of a vector.
//             IN_W       Bits of an element.
//             IN_SIGNED  1: elements are two's complement; 0: unsigned.
//             INDEX_W    Bits of the position, at least ceil(log2(LANES * BEATS)).
// Latency     2 cycles after the last beat of a vector; one beat per cycle.
// Contract    The first of several equal largest elements wins.
`default_nettype none
module hg_argmax #(
    parameter integer LANES     = 2,
    parameter integer BEATS     = 5,
    parameter integer IN_W      = 8,
    parameter integer IN_SIGNED = 1,
    parameter integer INDEX_W   = 4
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [LANES*IN_W-1:0] s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire [INDEX_W-1:0]    m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
    localparam integer BW = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam [BW-1:0] LAST = BEATS[BW-1:0] - 1'b1;

    reg               valid_reg, beat_valid_reg, first_reg, last_reg;
    reg [BW-1:0]      beat_reg;
    reg [INDEX_W-1:0] base_reg;

    // Largest element of a beat.
    reg [IN_W-1:0]    top, top_reg, best_reg;
    reg [INDEX_W-1:0] at, at_reg, index_reg;
    integer g;

    function greater(input [IN_W-1:0] a, input [IN_W-1:0] b);
        greater = $signed({(IN_SIGNED != 0) && a[IN_W-1], a})
                > $signed({(IN_SIGNED != 0) && b[IN_W-1], b});
    endfunction

    always @* begin
        top = s_data[IN_W-1:0];
        at  = base_reg;
        for (g = 1; g < LANES; g = g + 1)
            if (greater(s_data[g*IN_W +: IN_W], top)) begin
                top = s_data[g*IN_W +: IN_W];
                at  = base_reg + g[INDEX_W-1:0];
            end
    end

    wire en = m_ready || !valid_reg;
    assign s_ready = en;
    assign m_valid = valid_reg;
    assign m_data  = index_reg;

    always @(posedge clk) begin
        if (en) begin
            top_reg        <= top;
            at_reg         <= at;
            first_reg      <= beat_reg == {BW{1'b0}};
            last_reg       <= beat_reg == LAST;
            beat_valid_reg <= s_valid;
            if (s_valid) begin
                beat_reg <= (beat_reg == LAST) ? {BW{1'b0}} : beat_reg + 1'b1;
                base_reg <= (beat_reg == LAST) ? {INDEX_W{1'b0}} : base_reg + LANES[INDEX_W-1:0];
            end
            if (beat_valid_reg && (first_reg || greater(top_reg, best_reg))) begin
                best_reg  <= top_reg;
                index_reg <= at_reg;
            end
            valid_reg <= beat_valid_reg && last_reg;
        end
        if (rst) begin
            beat_valid_reg <= 1'b0;
            valid_reg      <= 1'b0;
            beat_reg       <= {BW{1'b0}};
            base_reg       <= {INDEX_W{1'b0}};
        end
    end
endmodule
`default_nettype wire
