// hg_rank: any step function by a cascade of small tables, from the low bits of x up.
//
// Purpose     code = f(x). The state after the low k bits of x is how many of the thresholds' low
//             k bits they reach; a level looks up the next state by the state and more bits of x,
//             the last level the code.
// Parameters  LANES      elements of a beat
//             IN_W       bits of x
//             OUT_W      bits of the code
//             LOW        lowest bit of x that matters
//             LEVELS     tables of a lane
//             CHUNKS     a byte for each level, the first in the low byte: bits of x that it takes
//             STATES     a byte for each level: bits of its result; OUT_W in the last one
//             TABLE_W    bits of the largest table
//             FILE       file name stem; FILE_<lane>.mem (four digits) holds a word of TABLE_W bits
//                        for each level: its table, the entry of address 0 in the low bits; an
//                        address is the bits of x above the state
// Latency     LEVELS cycles, one beat a cycle
// Contract    each lane has one function; LOW and CHUNKS add up to at most IN_W. A table with an
//             address of six bits is one LUT for each bit of its result; registers on both sides
//             keep it so. A table is a word, not a memory, because synthesis turns parts of a small
//             memory with a registered read into enables and resets, which takes more LUTs.
`default_nettype none
module hg_rank #(
    parameter integer        LANES   = 2,
    parameter integer        IN_W    = 8,
    parameter integer        OUT_W   = 3,
    parameter integer        LOW     = 0,
    parameter integer        LEVELS  = 2,
    parameter [8*LEVELS-1:0] CHUNKS  = 16'h0305,
    parameter [8*LEVELS-1:0] STATES  = 16'h0303,
    parameter integer        TABLE_W = 192,
    parameter                FILE    = ""
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
    reg  [LEVELS-1:0] valid_reg;
    wire [LEVELS:0]   valid_in = {valid_reg, s_valid};
    wire              en = m_ready || !valid_reg[LEVELS-1];

    assign s_ready = en;
    assign m_valid = valid_reg[LEVELS-1];

    always @(posedge clk) begin
        if (en) valid_reg <= valid_in[LEVELS-1:0];
        if (rst) valid_reg <= {LEVELS{1'b0}};
    end

    // Lowest bit of x that the levels below `level` leave.
    function integer position(input integer level);
        integer i;
        begin
            position = LOW;
            for (i = 0; i < level; i = i + 1) position = position + {24'd0, CHUNKS[8*i +: 8]};
        end
    endfunction

    localparam integer TOP = position(LEVELS);

    genvar g, l;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            localparam integer D3 = 48 + (g / 1000) % 10;
            localparam integer D2 = 48 + (g / 100) % 10;
            localparam integer D1 = 48 + (g / 10) % 10;
            localparam integer D0 = 48 + g % 10;
            (* rom_style = "auto" *) reg [TABLE_W-1:0] rom [0:LEVELS-1];
            initial if (FILE != "") $readmemh({FILE, "_", D3[7:0], D2[7:0], D1[7:0], D0[7:0], ".mem"}, rom);
            for (l = 0; l < LEVELS; l = l + 1) begin : level
                localparam integer AT      = position(l);
                localparam integer CHUNK_W = {24'd0, CHUNKS[8*l +: 8]};
                localparam integer STATE_W = (l == 0) ? 0 : {24'd0, STATES[8*((l == 0) ? 0 : l-1) +: 8]};
                localparam integer NEXT_W  = {24'd0, STATES[8*l +: 8]};
                localparam integer ADDR_W  = CHUNK_W + STATE_W;
                wire [TABLE_W-1:0] entries = rom[l];
                reg  [NEXT_W-1:0]  next_reg;
                wire [TOP-AT-1:0]  x;
                wire [ADDR_W-1:0]  address;
                if (l == 0) begin : first
                    assign x       = s_data[g*IN_W + LOW +: TOP-LOW];
                    assign address = x[CHUNK_W-1:0];
                end else begin : later
                    assign x       = level[l-1].more.x_reg;
                    assign address = {x[CHUNK_W-1:0], level[l-1].next_reg};
                end
                if (l < LEVELS - 1) begin : more
                    reg [TOP-AT-CHUNK_W-1:0] x_reg;
                    always @(posedge clk) if (en) x_reg <= x[TOP-AT-1:CHUNK_W];
                end
                always @(posedge clk) if (en) next_reg <= entries[address*NEXT_W +: NEXT_W];
            end
            assign m_data[g*OUT_W +: OUT_W] = level[LEVELS-1].next_reg;
        end
    endgenerate
    wire unused = &{1'b0, valid_in, s_data};
endmodule
`default_nettype wire
