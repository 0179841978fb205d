// hg_window_count: one of the counts of hg_window_flow.
//
// Purpose     count of words that moves by `step` to the next window.
// Parameters  W     bits of the count
//             FROM  what it is after reset, W bits
//             LATE  go comes late: it chooses one of two sums, instead of what is added
// Latency     count belongs to the cycles before this one: `take` adds 1, `go` adds step
// Contract    modulo 2^W. The words that are taken come in as a carry, out of the lowest bit: one chain of
//             carries for both.
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
