// hg_window_step: how far a position moves that is clamped to an image.
//
// Purpose     the steps of the counts in hg_window_flow without arithmetic: with
//             q = FIRST, FIRST + STRIDE, ... (COUNT positions) and
//             d = clamp(q + STRIDE, 0, LIMIT) - clamp(q, 0, LIMIT),
//             step = d * UNIT + OFFSET if d > 0, else REST; the port p is q + SHIFT.
// Parameters  FIRST, STRIDE, COUNT, LIMIT, UNIT, OFFSET, REST, SHIFT  see above
//             POS_W, STEP_W  bits of p and of step, both two's complement
// Latency     combinational
// Contract    exact modulo 2^STEP_W; only comparisons with constants. `moves`: d > 0.
`default_nettype none
module hg_window_step #(
    parameter integer FIRST  = -1,
    parameter integer STRIDE = 2,
    parameter integer COUNT  = 4,
    parameter integer LIMIT  = 5,
    parameter integer UNIT   = 3,
    parameter integer OFFSET = 0,
    parameter integer REST   = 0,
    parameter integer SHIFT  = 0,
    parameter integer POS_W  = 5,
    parameter integer STEP_W = 6
) (
    input  wire signed [POS_W-1:0] p,
    output wire [STEP_W-1:0]       step,
    output wire                    moves
);
    // LOW is the last position below 0 and HIGH the last one below LIMIT: between them, positions
    // move by STRIDE; from them, by D_LOW and D_HIGH; before LOW and after HIGH, not at all.
    localparam integer LAST   = FIRST + (COUNT - 1) * STRIDE;
    localparam integer REM    = ((FIRST % STRIDE) + STRIDE) % STRIDE;
    localparam integer LOW    = REM - STRIDE;
    localparam integer HIGH   = LIMIT - 1 - (((LIMIT - 1 - REM) % STRIDE) + STRIDE) % STRIDE;
    localparam integer D_LOW  = (REM < LIMIT) ? REM : LIMIT;
    localparam integer D_HIGH = LIMIT - ((HIGH < 0) ? 0 : HIGH);
    localparam integer S_LOW  = (D_LOW == 0) ? REST : D_LOW * UNIT + OFFSET;
    localparam integer S_HIGH = (D_HIGH == 0) ? REST : D_HIGH * UNIT + OFFSET;
    localparam integer S_MID  = STRIDE * UNIT + OFFSET;
    localparam integer LOW_P  = LOW + SHIFT;
    localparam integer HIGH_P = HIGH + SHIFT;
    localparam [0:0] HAS_LOW  = FIRST <= LOW && LOW <= LAST;
    localparam [0:0] HAS_HIGH = FIRST <= HIGH && HIGH <= LAST;
    localparam [0:0] BEYOND   = LAST < LOW || HIGH < FIRST;

    // Whether a < b, in gates: a carry chain adds the step, and none stands in front of that.
    function less(input [POS_W-1:0] a, input [POS_W-1:0] b);
        integer n;
        begin
            less = 1'b0;
            for (n = 0; n < POS_W - 1; n = n + 1) less = (a[n] == b[n]) ? less : b[n];
            if (a[POS_W-1] != b[POS_W-1]) less = a[POS_W-1];
        end
    endfunction

    wire low     = HAS_LOW && p == $signed(LOW_P[POS_W-1:0]);
    wire high    = HAS_HIGH && p == $signed(HIGH_P[POS_W-1:0]);
    wire outside = BEYOND || (HAS_LOW && less(p, LOW_P[POS_W-1:0]))
                          || (HAS_HIGH && less(HIGH_P[POS_W-1:0], p));

    assign step  = outside ? REST[STEP_W-1:0] : high ? S_HIGH[STEP_W-1:0]
                 : low     ? S_LOW[STEP_W-1:0] : S_MID[STEP_W-1:0];
    assign moves = !outside && !(high && D_HIGH == 0) && !(low && D_LOW == 0);
endmodule
`default_nettype wire
