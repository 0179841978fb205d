// hg_lut_network: Each bit of a beat is a function of another beat's bits, in lookup tables of six inputs.
//
// Purpose     Neurons with few input bits: weights, bias, activation and quantizer in lookup tables.
// Parameters  IN_W       Bits of s_data.
//             OUT_W      Bits of m_data.
//             FUNCTIONS  Lookup tables. The last OUT_W are m_data, the lowest bit first.
//             LEVELS     Levels of lookup tables. A function uses functions of lower levels;
//                        the last one is m_data.
//             ENDS       16 bits for each level, the lowest first: the number of functions up to its end.
//             INPUTS     96 bits for each function: six numbers of 16 bits, the lowest first.
//                        Number n is bit n of s_data or, from IN_W on, function n - IN_W.
//             TABLES     64 bits for each function: entry i is bit i; the first input is the lowest bit of i.
// Latency     1 cycle, one beat per cycle.
// Contract    Exact for every beat.
`default_nettype none
module hg_lut_network #(
    parameter integer IN_W      = 4,
    parameter integer OUT_W     = 2,
    parameter integer FUNCTIONS = 3,
    parameter integer LEVELS    = 2,
    parameter [16*LEVELS-1:0] ENDS = 32'h0003_0001,
    parameter [96*FUNCTIONS-1:0] INPUTS = {96'h0003_0002, 96'h0004_0002, 96'h0001_0000},
    parameter [64*FUNCTIONS-1:0] TABLES = {{16{4'h6}}, {16{4'h8}}, {16{4'h6}}}
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [IN_W-1:0]  s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [OUT_W-1:0] m_data,
    output wire             m_valid,
    input  wire             m_ready
);
    reg  valid_reg;
    wire en = m_ready || !valid_reg;

    assign s_ready = en;
    assign m_valid = valid_reg;
    always @(posedge clk) begin
        if (en) valid_reg <= s_valid;
        if (rst) valid_reg <= 1'b0;
    end

    reg [OUT_W-1:0] data_reg;
    assign m_data = data_reg;

    genvar l, f, k;
    generate
        // A level has the bits of the level below it, then its own functions.
        for (l = 0; l < LEVELS; l = l + 1) begin : level
            localparam integer LOW  = (l == 0) ? 0 : {16'd0, ENDS[16*((l == 0) ? 0 : l-1) +: 16]};
            localparam integer HIGH = {16'd0, ENDS[16*l +: 16]};
            wire [IN_W+LOW-1:0]  below;
            wire [IN_W+HIGH-1:0] value;
            wire unused = &{1'b0, below, value};
            if (l == 0) begin : first
                assign below = s_data;
            end else begin : next
                assign below = level[l-1].value;
            end
            assign value[IN_W+LOW-1:0] = below;
            for (f = LOW; f < HIGH; f = f + 1) begin : lookup
                localparam [63:0] TABLE = TABLES[64*f +: 64];
                wire [5:0] index;
                for (k = 0; k < 6; k = k + 1) begin : pin
                    localparam integer PLACE = {16'd0, INPUTS[96*f + 16*k +: 16]};
                    assign index[k] = below[PLACE];
                end
                assign value[IN_W+f] = TABLE[index];
            end
        end
    endgenerate

    always @(posedge clk) if (en) data_reg <= level[LEVELS-1].value[IN_W+FUNCTIONS-1 -: OUT_W];
endmodule
`default_nettype wire
