// hg_window_step: Movement of a position that is clamped to an image.
//
// Purpose     Steps of the counts in hg_window_flow without arithmetic. With
//             q = FIRST + n * STRIDE, n < COUNT, and
//             d = clamp(q + STRIDE, 0, LIMIT) - clamp(q, 0, LIMIT),
//             step = d * UNIT + OFFSET if d > 0, else REST.
// Parameters  FIRST, STRIDE, COUNT, LIMIT, UNIT, OFFSET, REST: See above.
//             INDEX_W, STEP_W  Bits of n, and of step, which is two's complement.
// Latency     Combinational.
// Contract    Exact modulo 2^STEP_W, with comparisons with constants only. Output `moves`: d > 0.
`default_nettype none
module hg_window_step #(
    parameter integer FIRST   = -1,
    parameter integer STRIDE  = 2,
    parameter integer COUNT   = 4,
    parameter integer LIMIT   = 5,
    parameter integer UNIT    = 3,
    parameter integer OFFSET  = 0,
    parameter integer REST    = 0,
    parameter integer INDEX_W = 2,
    parameter integer STEP_W  = 6
) (
    input  wire [INDEX_W-1:0] n,
    output wire [STEP_W-1:0]  step,
    output wire               moves
);
    // LOW is the last position below 0 and HIGH the last one below LIMIT. Between them, positions move by
    // STRIDE; from them, by D_LOW and D_HIGH; before LOW and after HIGH, not at all.
    localparam integer LAST   = FIRST + (COUNT - 1) * STRIDE;
    localparam integer REM    = ((FIRST % STRIDE) + STRIDE) % STRIDE;
    localparam integer LOW    = REM - STRIDE;
    localparam integer HIGH   = LIMIT - 1 - (((LIMIT - 1 - REM) % STRIDE) + STRIDE) % STRIDE;
    localparam integer D_LOW  = (REM < LIMIT) ? REM : LIMIT;
    localparam integer D_HIGH = LIMIT - ((HIGH < 0) ? 0 : HIGH);
    localparam integer S_LOW  = (D_LOW == 0) ? REST : D_LOW * UNIT + OFFSET;
    localparam integer S_HIGH = (D_HIGH == 0) ? REST : D_HIGH * UNIT + OFFSET;
    localparam integer S_MID  = STRIDE * UNIT + OFFSET;
    localparam integer LOW_N  = (LOW - FIRST) / STRIDE;
    localparam integer HIGH_N = (HIGH - FIRST) / STRIDE;
    localparam [0:0] HAS_LOW  = FIRST <= LOW && LOW <= LAST;
    localparam [0:0] HAS_HIGH = FIRST <= HIGH && HIGH <= LAST;
    localparam [0:0] BEYOND   = LAST < LOW || HIGH < FIRST;

    // a < b, in gates: a carry chain adds the step, and no other chain should precede it.
    function less(input [INDEX_W-1:0] a, input [INDEX_W-1:0] b);
        integer i;
        begin
            less = 1'b0;
            for (i = 0; i < INDEX_W; i = i + 1) less = (a[i] == b[i]) ? less : b[i];
        end
    endfunction

    wire low     = HAS_LOW && n == LOW_N[INDEX_W-1:0];
    wire high    = HAS_HIGH && n == HIGH_N[INDEX_W-1:0];
    wire outside = BEYOND || (HAS_LOW && less(n, LOW_N[INDEX_W-1:0]))
                          || (HAS_HIGH && less(HIGH_N[INDEX_W-1:0], n));

    assign step  = outside ? REST[STEP_W-1:0] : high ? S_HIGH[STEP_W-1:0]
                 : low     ? S_LOW[STEP_W-1:0] : S_MID[STEP_W-1:0];
    assign moves = !outside && !(high && D_HIGH == 0) && !(low && D_LOW == 0);
endmodule
`default_nettype wire
