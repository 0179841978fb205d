// hg_norm_root_way: the reciprocal square root of one number, bit by bit.
//
// Purpose     one of the ways of hg_norm_root.
// Parameters  as those of hg_norm_root
// Latency     CYCLES - 1 cycles from load to done
// Contract    With W = moment * FACTOR + ADDEND: significand * 2^(1 - steps) is START-scaled
//             sqrt(START / W) rounded to 24 bits, to nearest even. See hg_norm_root.
`default_nettype none
module hg_norm_root_way #(
    parameter integer         M_W    = 12,
    parameter integer         E_W    = 6,
    parameter integer         W_W    = 14,
    parameter integer         STEPS  = 33,
    parameter integer         SERIAL = 0,
    parameter integer         SHIFT  = 0,
    parameter [W_W-1:0]       FACTOR = 1,
    parameter [W_W-1:0]       ADDEND = 5,
    parameter [W_W-1:0]       START  = 4
) (
    input  wire           clk,
    input  wire           rst,
    input  wire           load,
    input  wire [M_W-1:0] moment,
    output wire           done,
    output wire [23:0]    significand,
    output wire [E_W-1:0] steps
);
    localparam integer R_W   = W_W + 28;
    localparam integer MULT  = (SERIAL != 0) ? M_W : 0;
    localparam integer LAST  = MULT + STEPS + 2;
    localparam integer C_W   = $clog2(LAST + 1);
    localparam [C_W-1:0] ADDS = MULT[C_W-1:0];
    localparam [C_W-1:0] TRIPLES = ADDS + 1'b1;
    localparam [C_W-1:0] ENDS = LAST[C_W-1:0];

    reg             busy_reg, done_reg, whole_reg;  // whole: W is there
    reg [C_W-1:0]   count_reg;
    reg [M_W-1:0]   moment_reg;
    reg [W_W-1:0]   w_reg;
    reg [W_W+1:0]   w3_reg;
    reg [R_W-1:0]   rest_reg, trial_reg;  // T - m^2 W, and (4m + 1) W
    reg [24:0]      root_reg;
    reg [E_W-1:0]   steps_reg;
    reg [23:0]      significand_reg;

    assign done = done_reg;
    assign significand = significand_reg;
    assign steps = steps_reg;

    // W, by the digits of the moment or at once.
    wire [W_W:0]         digit   = {w_reg, 1'b0} + (moment_reg[M_W-1] ? {1'b0, FACTOR} : {W_W+1{1'b0}});
    wire [M_W+W_W-1:0]   shifted = {{W_W{1'b0}}, moment_reg} << SHIFT;
    wire [W_W-1:0]       product = (SERIAL != 0) ? w_reg : shifted[W_W-1:0];

    // One bit of the root.
    wire [R_W:0]   diff  = {1'b0, rest_reg[R_W-3:0], 2'b00} - {1'b0, trial_reg};
    wire           one   = !diff[R_W];
    wire [R_W-1:0] above = {trial_reg[R_W-2:0], 1'b0} + {{R_W-W_W-2{1'b0}}, w3_reg};
    wire [R_W-1:0] below = {trial_reg[R_W-2:0], 1'b0} - {{R_W-W_W{1'b0}}, w_reg};

    wire        up      = root_reg[0] && (root_reg[1] || rest_reg != {R_W{1'b0}});
    wire [24:0] rounded = {1'b0, root_reg[24:1]} + {24'd0, up};

    always @(posedge clk) begin
        done_reg <= 1'b0;
        if (load) begin
            busy_reg   <= 1'b1;
            whole_reg  <= 1'b0;
            count_reg  <= {C_W{1'b0}};
            moment_reg <= moment;
            w_reg      <= {W_W{1'b0}};
            rest_reg   <= {{R_W-W_W{1'b0}}, START};
            root_reg   <= 25'd0;
            steps_reg  <= {E_W{1'b0}};
        end else if (busy_reg) begin
            count_reg <= count_reg + 1'b1;
            if (count_reg == ADDS) begin
                w_reg     <= product + ADDEND;
                whole_reg <= 1'b1;
            end else if (!whole_reg) begin
                w_reg      <= digit[W_W-1:0];
                moment_reg <= moment_reg << 1;
            end else if (count_reg == TRIPLES) begin
                w3_reg    <= {2'b00, w_reg} + {1'b0, w_reg, 1'b0};
                trial_reg <= {{R_W-W_W{1'b0}}, w_reg};
            end else if (count_reg != ENDS) begin
                if (!root_reg[24]) begin
                    root_reg  <= {root_reg[23:0], one};
                    rest_reg  <= one ? diff[R_W-1:0] : {rest_reg[R_W-3:0], 2'b00};
                    trial_reg <= one ? above : below;
                    steps_reg <= steps_reg + 1'b1;
                end
            end else begin
                significand_reg <= rounded[24] ? 24'h800000 : rounded[23:0];
                steps_reg       <= steps_reg - {{E_W-1{1'b0}}, rounded[24]};
                busy_reg        <= 1'b0;
                done_reg        <= 1'b1;
            end
        end
        if (rst) begin
            busy_reg <= 1'b0;
            done_reg <= 1'b0;
        end
    end
    wire unused = &{1'b0, digit, shifted};
endmodule
`default_nettype wire
