// hg_correct_bucket: First stage of a lane of hg_correct: the bucket of x.
//
// Purpose     bucket = the BUCKET bits of x from bit COARSE on. Inputs outside FIRST .. LAST are marked.
// Parameters  IN_W, IN_SIGNED  Bits of x; 1: two's complement, 0: unsigned.
//             FIRST, LAST      Bits of the smallest and of the largest x in a bucket.
//             BUCKET, COARSE   Bits of a bucket number, and its lowest bit in x.
//             X_W              Bits of x that y needs.
//             LATE             1: inputs outside get their code in the last stages. 0: they use the buckets
//                              of FIRST and LAST.
// Latency     0.
// Contract    Output side: bit 0: x < FIRST. Bit 1: x > LAST, unless LATE. Bit 2: x > LAST, if LATE. Output
//             own is the bucket of x itself. Outputs first_bucket, last_bucket and late are constants.
`default_nettype none
module hg_correct_bucket #(
    parameter integer    IN_W      = 10,
    parameter integer    IN_SIGNED = 1,
    parameter [IN_W-1:0] FIRST     = 0,
    parameter [IN_W-1:0] LAST      = 0,
    parameter integer    BUCKET    = 2,
    parameter integer    COARSE    = 8,
    parameter integer    X_W       = 8,
    parameter integer    LATE      = 0
) (
    input  wire [IN_W-1:0]   x,
    output wire [X_W-1:0]    low,
    output wire [BUCKET-1:0] own,
    output wire [BUCKET-1:0] bucket,
    output wire [BUCKET-1:0] first_bucket,
    output wire [BUCKET-1:0] last_bucket,
    output wire              late,
    output wire [2:0]        side
);
    localparam integer W_W = IN_W + COARSE + BUCKET + X_W;
    localparam [W_W-1:0] FIRST_WIDE = {{W_W-IN_W{(IN_SIGNED != 0) && FIRST[IN_W-1]}}, FIRST};
    localparam [W_W-1:0] LAST_WIDE  = {{W_W-IN_W{(IN_SIGNED != 0) && LAST[IN_W-1]}}, LAST};
    wire [W_W-1:0] wide = {{W_W-IN_W{(IN_SIGNED != 0) && x[IN_W-1]}}, x};
    wire [1:0]     outside;
    hg_correct_side #(.IN_W(IN_W), .IN_SIGNED(IN_SIGNED), .FIRST(FIRST), .LAST(LAST)) ends (
        .x(x), .side(outside));

    assign low          = wide[X_W-1:0];
    assign own          = wide[COARSE +: BUCKET];
    assign first_bucket = FIRST_WIDE[COARSE +: BUCKET];
    assign last_bucket  = LAST_WIDE[COARSE +: BUCKET];
    assign bucket       = late ? own : outside[0] ? first_bucket : outside[1] ? last_bucket : own;
    assign late         = LATE != 0;
    assign side         = {outside[1] && late, outside[1] && !late, outside[0]};
    wire unused = &{1'b0, wide};
endmodule
`default_nettype wire
