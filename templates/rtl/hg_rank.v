// hg_rank: Any monotone quantizer function, as a cascade of small lookup tables from the low bits of x up.
//
// Purpose     code = f(x). The state after the low k bits of x counts the thresholds whose low k bits are
//             reached. A level looks up the next state by the state and more bits of x; the last level
//             looks up the code.
// Parameters  LANES    Elements of a beat.
//             IN_W     Bits of x.
//             OUT_W    Bits of the code.
//             LOW      Lowest bit of x that matters.
//             LEVELS   Lookup tables per lane.
//             CHUNKS   A byte per level, the first in the low byte: bits of x that the level consumes.
//             STATES   A byte per level: bits of its result; OUT_W in the last one.
//             TABLE_W  Bits of the largest lookup table.
//             FILE     File name stem. FILE_<lane>.mem (four digits) holds a word of TABLE_W bits per
//                      level: its lookup table, the entry of address 0 in the low bits. An address is the
//                      bits of x above the state.
// Latency     LEVELS cycles, one beat per cycle.
// Contract    Each lane has one function. LOW and CHUNKS add up to at most IN_W. A lookup table with six
//             address bits is one LUT per result bit; registers on both sides keep it so. It is a word, not
//             a memory: synthesis turns parts of a small memory with a registered read into enables and
//             resets, which costs more LUTs.
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

    // Lowest bit of x that the levels below `level` do not consume.
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
