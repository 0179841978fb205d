// hg_width_narrow: Splits input beats into output beats.
//
// Purpose     Part of hg_width: COUNT output beats from an input beat, the low bits first.
// Parameters  WIDTH  Bits of an output beat.
//             COUNT  Output beats in an input beat.
//             TAIL   Output beats from an input beat with s_last, at most COUNT.
// Latency     As in hg_width: 1 cycle, then one beat per cycle.
// Contract    Outputs s_ready and m_* depend on registers only. COUNT of 1 is a skid buffer. TAIL is COUNT
//             if s_last is always 1.
`default_nettype none
module hg_width_narrow #(
    parameter integer WIDTH = 4,
    parameter integer COUNT = 3,
    parameter integer TAIL  = 2
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [COUNT*WIDTH-1:0] s_data,
    input  wire                   s_last,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [WIDTH-1:0]       m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer CW = (COUNT <= 1) ? 1 : $clog2(COUNT);
    localparam integer COUNT_1 = COUNT - 1, TAIL_1 = TAIL - 1;

    // The first part of a beat goes to the output at once if that is free. The beat is stored for the other
    // parts.
    reg [COUNT*WIDTH-1:0] rest_reg;
    reg [WIDTH-1:0]       data_reg;
    reg [CW-1:0]          part_reg, end_reg;    // the next part; the last one
    reg                   rests_reg, valid_reg;

    wire          advance = m_ready || !valid_reg;
    wire [CW-1:0] s_end   = s_last ? TAIL_1[CW-1:0] : COUNT_1[CW-1:0];
    wire          single  = s_end == {CW{1'b0}};

    wire [CW-1:0] part_next;
    hg_next #(.W(CW)) parts (.at(part_reg), .down(1'b0), .wrap(1'b0), .next(part_next));

    assign s_ready = !rests_reg;
    assign m_valid = valid_reg;
    assign m_data  = data_reg;

    always @(posedge clk) begin
        if (s_ready) begin
            rest_reg <= s_data;
            end_reg  <= s_end;
        end
        if (advance) begin
            data_reg  <= rests_reg ? rest_reg[part_reg*WIDTH +: WIDTH] : s_data[WIDTH-1:0];
            valid_reg <= rests_reg || s_valid;
        end
        if (s_ready) begin
            part_reg  <= {{(CW-1){1'b0}}, advance && COUNT > 1};
            rests_reg <= s_valid && !(advance && single);
        end else if (advance) begin
            part_reg  <= part_next;
            rests_reg <= part_reg != end_reg;
        end
        if (rst) begin
            rests_reg <= 1'b0;
            valid_reg <= 1'b0;
        end
    end
endmodule
`default_nettype wire
