// hg_softmax_reciprocal: Reciprocal of a 24-bit number, to as many bits as its rounding needs.
//
// Purpose     Division by the sum of a row, once for all its elements. It is non-restoring, two quotient
//             bits per cycle. It uses as few stages as the distance of numbers allows: each number has GAP
//             cycles.
// Parameters  GAP  Least enabled cycles from a number to the next one.
// Latency     13 cycles, advancing on en.
// Contract    Input s is at least 2^23. 2^24 + m = floor(2^48 / s), but 2^25 - 1 for s = 2^23. Hence 2^47 /
//             s rounded to 24 bits is floor((2^24 + m + 1) / 2): there are no ties, as no other s divides
//             2^48. Output m_data is valid only in the enabled cycle in which m_valid is 1.
`default_nettype none
module hg_softmax_reciprocal #(
    parameter integer GAP = 3
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        en,
    input  wire [23:0] s_data,
    input  wire        s_valid,
    output wire [23:0] m_data,
    output wire        m_valid
);
    localparam integer STEPS  = 12;
    localparam integer PART   = (GAP < STEPS) ? GAP : STEPS;  // steps of a stage
    localparam integer STAGES = (STEPS + PART - 1) / PART;

    // Next remainder, -s to s - 1: twice the remainder minus s, or plus s where it is negative.
    function [24:0] one_bit(input [24:0] left, input [23:0] divisor);
        reg less;
        begin
            less    = !left[24];
            one_bit = {left[23:0], less} + {less, divisor ^ {24{less}}};
        end
    endfunction

    // The first bit is 1, which leaves 2^24 - s.
    reg [STEPS:0] valid_reg;
    reg [23:0]    divisor_reg;
    reg [24:0]    left_reg;
    always @(posedge clk) begin
        if (en) begin
            valid_reg   <= {valid_reg[STEPS-1:0], s_valid};
            divisor_reg <= s_data;
            left_reg    <= 25'h1000000 - {1'b0, s_data};
        end
        if (rst) valid_reg <= {STEPS+1{1'b0}};
    end
    assign m_valid = valid_reg[STEPS];

    genvar g;
    generate
        for (g = 0; g < STAGES; g = g + 1) begin : stage
            wire        load = (PART == 1) || valid_reg[g*PART];
            wire [23:0] divisor_in, quotient_in;
            wire [24:0] left_in;
            reg  [23:0] own_divisor_reg, quotient_reg;
            reg  [24:0] rest_reg;
            wire [23:0] divisor  = load ? divisor_in : own_divisor_reg;
            wire [24:0] once     = one_bit(load ? left_in : rest_reg, divisor);
            wire [24:0] twice    = one_bit(once, divisor);
            if (g == 0) begin : first
                // Older bits leave at the top.
                assign divisor_in  = divisor_reg;
                assign left_in     = left_reg;
                assign quotient_in = (PART == 1) ? 24'd0 : quotient_reg;
            end else begin : next
                assign divisor_in  = stage[g-1].own_divisor_reg;
                assign left_in     = stage[g-1].rest_reg;
                assign quotient_in = load ? stage[g-1].quotient_reg : quotient_reg;
            end
            always @(posedge clk) if (en) begin
                if (load) own_divisor_reg <= divisor_in;
                rest_reg     <= twice;
                quotient_reg <= {quotient_in[21:0], !once[24], !twice[24]};
            end
            wire unused = &{1'b0, quotient_in[23:22]};
        end
    endgenerate
    assign m_data = stage[STAGES-1].quotient_reg;
endmodule
`default_nettype wire
