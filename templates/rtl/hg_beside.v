// hg_beside: Concatenates the pixels of two streams.
//
// Purpose     Joins tensors along the channels, one beat of each per cycle. For each of PIXELS pixels, m
//             holds the LANES_A elements of a, then the LANES_B elements of b.
// Parameters  UNIT_A, A_SIGNED  Bits of an element of a; 1: two's complement, 0: unsigned.
//             UNIT_B, B_SIGNED  The same for b.
//             UNIT_OUT        Bits of an element of m, at least UNIT_A and UNIT_B.
//             LANES_A, LANES_B  Elements of a pixel.
//             PIXELS          Pixels of a beat.
// Latency     1 enabled cycle (m_ready || !m_valid). Both beats are consumed in the same cycle.
// Contract    Elements are sign- or zero-extended, otherwise unchanged.
`default_nettype none
module hg_beside #(
    parameter integer UNIT_A   = 3,
    parameter integer A_SIGNED = 1,
    parameter integer UNIT_B   = 4,
    parameter integer B_SIGNED = 0,
    parameter integer UNIT_OUT = 5,
    parameter integer LANES_A  = 2,
    parameter integer LANES_B  = 3,
    parameter integer PIXELS   = 2
) (
    input  wire                                         clk,
    input  wire                                         rst,
    input  wire [PIXELS*LANES_A*UNIT_A-1:0]             a_data,
    input  wire                                         a_valid,
    output wire                                         a_ready,
    input  wire [PIXELS*LANES_B*UNIT_B-1:0]             b_data,
    input  wire                                         b_valid,
    output wire                                         b_ready,
    output wire [PIXELS*(LANES_A+LANES_B)*UNIT_OUT-1:0] m_data,
    output wire                                         m_valid,
    input  wire                                         m_ready
);
    localparam integer BOTH = LANES_A + LANES_B;

    reg  valid_reg;
    wire en = m_ready || !valid_reg;
    assign a_ready = en && b_valid;
    assign b_ready = en && a_valid;
    assign m_valid = valid_reg;
    always @(posedge clk) begin
        if (en)  valid_reg <= a_valid && b_valid;
        if (rst) valid_reg <= 1'b0;
    end

    genvar p, g;
    generate
        for (p = 0; p < PIXELS; p = p + 1) begin : pixel
            for (g = 0; g < BOTH; g = g + 1) begin : lane
                wire [UNIT_OUT-1:0] element;
                reg  [UNIT_OUT-1:0] element_reg;
                if (g < LANES_A) begin : first
                    localparam integer AT = (p * LANES_A + g) * UNIT_A;
                    wire fill = (A_SIGNED != 0) && a_data[AT+UNIT_A-1];
                    wire [UNIT_OUT+UNIT_A-1:0] wide = {{UNIT_OUT{fill}}, a_data[AT +: UNIT_A]};
                    assign element = wide[UNIT_OUT-1:0];
                    wire unused = &{1'b0, wide};
                end else begin : second
                    localparam integer AT = (p * LANES_B + g - LANES_A) * UNIT_B;
                    wire fill = (B_SIGNED != 0) && b_data[AT+UNIT_B-1];
                    wire [UNIT_OUT+UNIT_B-1:0] wide = {{UNIT_OUT{fill}}, b_data[AT +: UNIT_B]};
                    assign element = wide[UNIT_OUT-1:0];
                    wire unused = &{1'b0, wide};
                end
                always @(posedge clk) if (en) element_reg <= element;
                assign m_data[(p*BOTH+g)*UNIT_OUT +: UNIT_OUT] = element_reg;
            end
        end
    endgenerate
endmodule
`default_nettype wire
