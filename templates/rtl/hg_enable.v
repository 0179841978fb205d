// hg_enable: whether a unit takes a step, as a table of its own.
//
// Purpose     the enable of registers that lie far from what decides it: the number of a word of weights.
// Parameters  WAYS  signals of which one is enough
// Latency     0
// Contract    step is able && (|ready || !valid). A module of its own: tools that map a flat design take the
//             part of it that others need as well from a table of theirs, with a wire more.
`default_nettype none
(* keep_hierarchy = "yes" *)
module hg_enable #(
    parameter integer WAYS = 2
) (
    input  wire            able,
    input  wire [WAYS-1:0] ready,
    input  wire            valid,
    output wire            step
);
    assign step = able && (|ready || !valid);
endmodule
`default_nettype wire
