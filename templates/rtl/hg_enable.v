// hg_enable: Step enable of a unit, as a separate LUT.
//
// Purpose     Enable of registers with high fan-out far from their cause: the number of a word of weights.
// Parameters  WAYS  Signals of which one is enough.
// Latency     0.
// Contract    step is able && (|ready || !valid). A separate module, because tools that map a flat design
//             share a subexpression with other logic and add a routing hop.
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
