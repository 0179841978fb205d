// hg_concat: Beats of one stream, then beats of another, repeatedly.
//
// Purpose     Joins tensors along an axis: BEATS_A beats of a, then BEATS_B beats of b, repeatedly.
// Parameters  UNIT_A, A_SIGNED  Bits of an element of a; 1: two's complement, 0: unsigned.
//             UNIT_B, B_SIGNED  The same for b.
//             UNIT_OUT        Bits of an element of m, at least UNIT_A and UNIT_B.
//             LANES           Elements of a beat.
//             BEATS_A, BEATS_B  Beats of a turn, each at least 1.
// Latency     0. The stream whose turn it is drives m_valid and sees m_ready. The other stream's ready is
//             0. The turn changes in the cycle after its last beat.
// Contract    Elements are sign- or zero-extended, otherwise unchanged.
`default_nettype none
module hg_concat #(
    parameter integer UNIT_A   = 3,
    parameter integer A_SIGNED = 1,
    parameter integer UNIT_B   = 4,
    parameter integer B_SIGNED = 0,
    parameter integer UNIT_OUT = 5,
    parameter integer LANES    = 2,
    parameter integer BEATS_A  = 2,
    parameter integer BEATS_B  = 3
) (
    input  wire                      clk,
    input  wire                      rst,
    input  wire [LANES*UNIT_A-1:0]   a_data,
    input  wire                      a_valid,
    output wire                      a_ready,
    input  wire [LANES*UNIT_B-1:0]   b_data,
    input  wire                      b_valid,
    output wire                      b_ready,
    output wire [LANES*UNIT_OUT-1:0] m_data,
    output wire                      m_valid,
    input  wire                      m_ready
);
    localparam integer MOST = (BEATS_A > BEATS_B) ? BEATS_A : BEATS_B;
    localparam integer CW = (MOST <= 1) ? 1 : $clog2(MOST);
    localparam [CW-1:0] LAST_A = BEATS_A[CW-1:0] - 1'b1;
    localparam [CW-1:0] LAST_B = BEATS_B[CW-1:0] - 1'b1;

    reg          turn_reg;   // 0: a, 1: b
    reg [CW-1:0] beat_reg;
    wire         last = beat_reg == (turn_reg ? LAST_B : LAST_A);

    assign m_valid = turn_reg ? b_valid : a_valid;
    assign a_ready = m_ready && !turn_reg;
    assign b_ready = m_ready && turn_reg;

    always @(posedge clk) begin
        if (m_valid && m_ready) begin
            beat_reg <= last ? {CW{1'b0}} : beat_reg + 1'b1;
            if (last) turn_reg <= !turn_reg;
        end
        if (rst) begin
            beat_reg <= {CW{1'b0}};
            turn_reg <= 1'b0;
        end
    end

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [UNIT_A-1:0] a = a_data[g*UNIT_A +: UNIT_A];
            wire [UNIT_B-1:0] b = b_data[g*UNIT_B +: UNIT_B];
            wire [UNIT_A+UNIT_OUT-1:0] ax = {{UNIT_OUT{(A_SIGNED != 0) && a[UNIT_A-1]}}, a};
            wire [UNIT_B+UNIT_OUT-1:0] bx = {{UNIT_OUT{(B_SIGNED != 0) && b[UNIT_B-1]}}, b};
            assign m_data[g*UNIT_OUT +: UNIT_OUT] = turn_reg ? bx[UNIT_OUT-1:0] : ax[UNIT_OUT-1:0];
            wire unused = &{1'b0, ax, bx};
        end
    endgenerate
endmodule
`default_nettype wire
