// hg_index: Position of a beat in a repeating sequence.
//
// Purpose     Counts 0, 1, ... N - 1 and restarts, as the address of a parameter memory.
// Parameters  N  Beats of a sequence.
// Latency     1 cycle: `index` advances at each edge with `step`. Output `next` is its value after an edge
//             with `step` or `rst`. It does not depend on `step`, which arrives late.
// Contract    `index` is a plain register that follows a counter running one ahead. If the counter itself
//             were the address, Yosys would find its bits in the counter's carry chain. It would then map
//             both as one function of more inputs than a LUT has.
`default_nettype none
module hg_index #(
    parameter integer N = 4
) (
    input  wire                                  clk,
    input  wire                                  rst,
    input  wire                                  step,
    output wire [((N <= 1) ? 1 : $clog2(N))-1:0] index,
    output wire [((N <= 1) ? 1 : $clog2(N))-1:0] next
);
    localparam integer W = (N <= 1) ? 1 : $clog2(N);
    localparam [W-1:0] LAST = N[W-1:0] - 1'b1;
    localparam integer SECOND = (N > 1) ? 1 : 0;

    reg [W-1:0] index_reg, ahead_reg;
    wire [W-1:0] beyond;
    hg_next #(.W(W)) after (.at(ahead_reg), .down(1'b0), .wrap(ahead_reg == LAST), .next(beyond));
    assign index = index_reg;
    assign next  = ahead_reg & {W{!rst}};
    always @(posedge clk) begin
        if (step) begin
            index_reg <= ahead_reg;
            ahead_reg <= beyond;
        end
        if (rst) begin
            index_reg <= {W{1'b0}};
            ahead_reg <= SECOND[W-1:0];
        end
    end
endmodule
`default_nettype wire
