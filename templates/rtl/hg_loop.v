// hg_loop: Marks the last step of a loop.
//
// Purpose     Counts the steps of a loop that restarts after its last step.
// Parameters  N  Steps of the loop.
// Latency     Output `last` belongs to the next step and is a register.
// Contract    None.
`default_nettype none
module hg_loop #(
    parameter integer N = 4
) (
    input  wire clk,
    input  wire rst,
    input  wire step,
    output wire last
);
    localparam integer W = (N <= 1) ? 1 : $clog2(N);
    localparam integer BEFORE = (N <= 1) ? 0 : N - 2;

    reg  [W-1:0] at_reg;
    reg          last_reg;
    wire [W-1:0] next;
    hg_next #(.W(W)) after (.at(at_reg), .down(1'b0), .wrap(last_reg), .next(next));
    assign last = last_reg;
    always @(posedge clk) begin
        if (step) begin
            at_reg   <= next;
            last_reg <= N <= 1 || (!last_reg && at_reg == BEFORE[W-1:0]);
        end
        if (rst) begin
            at_reg   <= {W{1'b0}};
            last_reg <= N <= 1;
        end
    end
endmodule
`default_nettype wire
