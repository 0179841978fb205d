// hg_float_key: float32 bits to an unsigned key in numeric order.
//
// Purpose     Lets integer comparisons work on float32: a < b as numbers implies key(a) < key(b).
// Parameters  LANES  Elements of a beat.
// Latency     1 cycle, one beat per cycle.
// Contract    key = ~bits for negative numbers, bits + 2^31 otherwise. -0.0 is one below +0.0. Every NaN
//             has key 0, below -infinity.
`default_nettype none
module hg_float_key #(
    parameter integer LANES = 1
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [LANES*32-1:0] s_data,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [LANES*32-1:0] m_data,
    output wire                m_valid,
    input  wire                m_ready
);
    reg [LANES*32-1:0] key, key_reg;
    reg                valid_reg;
    integer g;

    always @* begin
        key = {LANES*32{1'b0}};
        for (g = 0; g < LANES; g = g + 1)
            if (s_data[g*32 + 23 +: 8] != 8'hff || s_data[g*32 +: 23] == 23'd0)
                key[g*32 +: 32] = s_data[g*32 + 31] ? ~s_data[g*32 +: 32]
                                                    : {1'b1, s_data[g*32 +: 31]};
    end

    assign s_ready = m_ready || !valid_reg;
    assign m_valid = valid_reg;
    assign m_data  = key_reg;

    always @(posedge clk) begin
        if (s_ready) begin
            key_reg   <= key;
            valid_reg <= s_valid;
        end
        if (rst) valid_reg <= 1'b0;
    end
endmodule
`default_nettype wire
