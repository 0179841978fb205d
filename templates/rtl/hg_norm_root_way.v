// hg_norm_root_way: Reciprocal square root of one number, bit by bit.
//
// Purpose     One root unit of hg_norm_root.
// Parameters  E_W, W_W, START  As in hg_norm_root.
// Latency     k steps are done k cycles after load, until the root has 25 bits.
// Contract    m = {rest, steps, root} with root = floor(sqrt(START * 4^steps / w)). One cycle later, rest =
//             1 if root^2 times w is less than START * 4^steps. Inputs w and triple = 3 * w are valid with
//             load. START is less than w.
`default_nettype none
module hg_norm_root_way #(
    parameter integer   E_W   = 6,
    parameter integer   W_W   = 14,
    parameter [W_W-1:0] START = 4
) (
    input  wire            clk,
    input  wire            load,
    input  wire [W_W-1:0]  w,
    input  wire [W_W+1:0]  triple,
    output wire [E_W+25:0] m_data
);
    localparam integer R_W = W_W + 28;

    reg [W_W-1:0] w_reg;
    reg [W_W+1:0] triple_reg;
    reg [R_W-1:0] left_reg, trial_reg;  // T - m^2 w, and (4m + 1) w
    reg [24:0]    root_reg;             // m
    reg [E_W-1:0] steps_reg;
    reg           rest_reg;

    wire [R_W:0]   diff  = {1'b0, left_reg[R_W-3:0], 2'b00} - {1'b0, trial_reg};
    wire           one   = !diff[R_W];
    wire [R_W-1:0] above = {trial_reg[R_W-2:0], 1'b0} + {{R_W-W_W-2{1'b0}}, triple_reg};
    wire [R_W-1:0] below = {trial_reg[R_W-2:0], 1'b0} - {{R_W-W_W{1'b0}}, w_reg};
    always @(posedge clk) begin
        rest_reg <= left_reg != {R_W{1'b0}};
        if (load) begin
            w_reg      <= w;
            triple_reg <= triple;
            left_reg   <= {{R_W-W_W{1'b0}}, START};
            trial_reg  <= {{R_W-W_W{1'b0}}, w};
            root_reg   <= 25'd0;
            steps_reg  <= {E_W{1'b0}};
        end else if (!root_reg[24]) begin
            left_reg  <= one ? diff[R_W-1:0] : {left_reg[R_W-3:0], 2'b00};
            trial_reg <= one ? above : below;
            root_reg  <= {root_reg[23:0], one};
            steps_reg <= steps_reg + 1'b1;
        end
    end
    assign m_data = {rest_reg, steps_reg, root_reg};
endmodule
`default_nettype wire
