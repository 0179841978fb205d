// hg_lane_table: A lookup table for each lane, over the bits of its input that matter.
//
// Purpose     code = entry number ((x + B) >> SHIFT) mod 2^BITS of the lane's table; constants of the lane.
// Parameters  LANES     Elements of a beat.
//             IN_W      Bits of x.
//             IN_SIGNED 1: x is two's complement; 0: unsigned.
//             OUT_W     Bits of the code.
//             SHIFTS    A byte per lane, the first in the low byte: right shift of the sum, at most IN_W.
//             BITS      A byte per lane: bits of the number of an entry; 0: the code is the same for every x.
//             OFFSETS   IN_W + 1 bits per lane: B, not negative.
//             SIZE      Bits of TABLES.
//             TABLES    The tables of all lanes, the first in the low bits. Each has OUT_W words of 2^BITS
//                       bits, that of the code's lowest bit first: bit i of a word is that bit of entry i.
//             ADD       1: a register between the sum and the table.
// Latency     1 + ADD cycles, one beat per cycle.
// Contract    Exact for every x: the sum has SHIFT + BITS bits, those above are dropped.
`default_nettype none
module hg_lane_table #(
    parameter integer LANES     = 2,
    parameter integer IN_W      = 6,
    parameter integer IN_SIGNED = 1,
    parameter integer OUT_W     = 2,
    parameter [8*LANES-1:0] SHIFTS = 16'h0203,
    parameter [8*LANES-1:0] BITS   = 16'h0203,
    parameter [LANES*(IN_W+1)-1:0] OFFSETS = 14'h0004,
    parameter integer SIZE      = 24,
    parameter [SIZE-1:0] TABLES = 24'h6a5c3b,
    parameter integer ADD       = 1
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*IN_W-1:0]  s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer STAGES = 1 + ((ADD != 0) ? 1 : 0);

    reg  [STAGES-1:0] valid_reg;
    wire [STAGES:0]   valid = {valid_reg, s_valid};
    wire              unused = valid[STAGES];
    wire              en = m_ready || !valid_reg[STAGES-1];

    assign s_ready = en;
    assign m_valid = valid_reg[STAGES-1];
    always @(posedge clk) begin
        if (en) valid_reg <= valid[STAGES-1:0];
        if (rst) valid_reg <= {STAGES{1'b0}};
    end

    // Number of zeros below the lowest 1 of the low `most` bits.
    function integer zeros(input [IN_W:0] value, input integer most);
        integer i;
        begin
            zeros = most;
            for (i = IN_W; i >= 0; i = i - 1) if (value[i] && i < most) zeros = i;
        end
    endfunction

    // Position of the table of lane n.
    function integer start(input integer n);
        integer i;
        begin
            start = 0;
            for (i = 0; i < n; i = i + 1) start = start + (OUT_W << BITS[8*i +: 8]);
        end
    endfunction

    genvar g, b;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            localparam integer SHIFT = {24'd0, SHIFTS[8*g +: 8]};
            localparam integer N     = {24'd0, BITS[8*g +: 8]};
            localparam integer W     = SHIFT + N;
            localparam [IN_W:0] B    = OFFSETS[g*(IN_W+1) +: IN_W+1];
            localparam integer TZ    = zeros(B, W);
            localparam [(OUT_W<<N)-1:0] TABLE = TABLES[start(g) +: (OUT_W << N)];

            wire [IN_W-1:0] x = s_data[g*IN_W +: IN_W];
            if (N == 0) begin : constant
                wire unused_x = &{1'b0, x};
                assign m_data[g*OUT_W +: OUT_W] = TABLE;
            end else begin : varies
                localparam integer X_W = ((IN_W > W) ? IN_W : W) + 1;
                wire [X_W-1:0] wide = {{X_W-IN_W{(IN_SIGNED != 0) && x[IN_W-1]}}, x};
                wire [W-1:0]   added;
                wire [N-1:0]   index;
                // The sum needs no carry below the lowest 1 of B.
                if (TZ == W) begin : plain
                    assign added = wide[W-1:0];
                end else if (TZ == 0) begin : whole
                    assign added = wide[W-1:0] + B[W-1:0];
                end else begin : part
                    assign added = {wide[W-1:TZ] + B[W-1:TZ], wide[TZ-1:0]};
                end
                wire unused_bits = &{1'b0, wide, added};
                if (ADD == 0) begin : at_once
                    assign index = added[W-1:SHIFT];
                end else begin : stored
                    reg [N-1:0] index_reg;
                    always @(posedge clk) if (en) index_reg <= added[W-1:SHIFT];
                    assign index = index_reg;
                end
                for (b = 0; b < OUT_W; b = b + 1) begin : code
                    localparam [(1<<N)-1:0] WORD = TABLE[(b << N) +: (1 << N)];
                    reg code_reg;
                    always @(posedge clk) if (en) code_reg <= WORD[index];
                    assign m_data[g*OUT_W + b] = code_reg;
                end
            end
        end
    endgenerate
endmodule
`default_nettype wire
