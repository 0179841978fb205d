// hg_window_count: One of the counts of hg_window_flow.
//
// Purpose     Word count that moves by `step` to the next window.
// Parameters  W     Bits of the count.
//             FROM  Value after reset, W bits.
//             LATE  1: go arrives late. It then selects one of two sums, instead of the addend.
// Latency     The count covers the cycles before this one: `take` adds 1, `go` adds step.
// Contract    Modulo 2^W. Accepted words enter as a carry out of the lowest bit: one carry chain serves
//             both.
`default_nettype none
module hg_window_count #(
    parameter integer W    = 6,
    parameter [W-1:0] FROM = 0,
    parameter integer LATE = 0
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         take,
    input  wire         go,
    input  wire [W-1:0] step,
    output wire [W-1:0] count
);
    reg  [W-1:0] count_reg;
    wire [W:0]   same  = {count_reg, 1'b1} + {{W{1'b0}}, take};
    wire [W:0]   moved = {count_reg, 1'b1} + {(LATE != 0) ? step : step & {W{go}}, take};
    wire         unused = &{1'b0, same, moved[0]};
    always @(posedge clk) begin
        count_reg <= (LATE == 0 || go) ? moved[W:1] : same[W:1];
        if (rst) count_reg <= FROM;
    end
    assign count = count_reg;
endmodule
`default_nettype wire
