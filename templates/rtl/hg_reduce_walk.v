// hg_reduce_walk: Position of the current pixel in the windows along one axis of an image.
//
// Purpose     Rows and columns of hg_reduce.
// Parameters  SIZE    Pixels along the axis, at least COUNT * KERNEL.
//             KERNEL  Pixels of a window. Windows neither overlap nor leave gaps.
//             COUNT   Windows. Pixels after them belong to no window.
// Latency     0: the outputs describe the current pixel; `step` moves to the next one at the clock edge.
// Contract    If `keep`, first and last mark the ends of a window. Output end_of marks the last pixel of
//             the axis; the first one follows.
`default_nettype none
module hg_reduce_walk #(
    parameter integer SIZE   = 7,
    parameter integer KERNEL = 2,
    parameter integer COUNT  = 3
) (
    input  wire clk,
    input  wire rst,
    input  wire step,
    output wire keep,
    output wire first,
    output wire last,
    output wire end_of
);
    localparam integer REST = SIZE - COUNT * KERNEL;

    wire end_window, last_window;
    wire kept = step && keep;
    reg  first_reg;
    assign first = first_reg;
    assign last  = end_window;
    always @(posedge clk) begin
        if (kept) first_reg <= end_window;
        if (rst)  first_reg <= 1'b1;
    end
    hg_loop #(.N(KERNEL)) taps (.clk(clk), .rst(rst), .step(kept), .last(end_window));
    hg_loop #(.N(COUNT)) windows (.clk(clk), .rst(rst), .step(kept && end_window), .last(last_window));

    generate
        if (REST == 0) begin : covered
            assign keep   = 1'b1;
            assign end_of = end_window && last_window;
        end else begin : behind
            reg  keep_reg;
            wire end_rest;
            assign keep   = keep_reg;
            assign end_of = !keep_reg && end_rest;
            hg_loop #(.N(REST)) rest (.clk(clk), .rst(rst), .step(step && !keep_reg), .last(end_rest));
            always @(posedge clk) begin
                if (step) keep_reg <= keep_reg ? !(end_window && last_window) : end_rest;
                if (rst)  keep_reg <= 1'b1;
            end
        end
    endgenerate
endmodule
`default_nettype wire
