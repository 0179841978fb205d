// hg_dma_bursts: Splits the memory of a job into AXI bursts.
//
// Purpose     Part of hg_dma: address and length of each burst, for frames that follow each other in memory.
// Parameters  ADDR_W  Bits of a byte address, 13 to 64.
//             DATA_W  Bits of a word: 32, 64 ... 1024.
//             WORDS   Words of a frame.
//             BURST   Longest burst in words, a power of two, 2 to 256.
// Latency     The first burst is offered 3 cycles after start if a frame has at least BURST words. Each frame
//             that a burst needs in addition takes 1 cycle. Later bursts are offered every other cycle.
// Contract    The bursts cover count * WORDS words from `base` on, in order and without gaps. No burst
//             crosses 4 KB. Bursts contain words of several frames. They are shorter than BURST words only at
//             the end of 4 KB and at the end of the job. `left` is 1 from start until the last burst is
//             accepted. The address bits below a word are ignored.
`default_nettype none
module hg_dma_bursts #(
    parameter integer ADDR_W = 32,
    parameter integer DATA_W = 32,
    parameter integer WORDS  = 16,
    parameter integer BURST  = 16
) (
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     start,
    input  wire [ADDR_W-1:0]        base,
    input  wire [31:0]              count,
    output wire                     left,
    output wire [ADDR_W-1:0]        m_addr,
    output wire [$clog2(BURST):0]   m_words,
    output wire                     m_valid,
    input  wire                     m_ready
);
    localparam integer SHIFT = $clog2(DATA_W / 8);
    localparam integer PAGE  = 12 - SHIFT;              // bits of a word's place in 4 KB
    localparam integer LIMIT = (BURST < (1 << PAGE)) ? BURST : (1 << PAGE);
    localparam integer BW    = $clog2(BURST) + 1;
    localparam integer OW    = $clog2(WORDS + BURST + 1);
    localparam integer AW    = ADDR_W - SHIFT;
    localparam [OW-1:0]   FRAME    = WORDS[OW-1:0];
    localparam [OW-1:0]   MOST     = LIMIT[OW-1:0];
    localparam [PAGE:0]   PAGE_END = {1'b1, {PAGE{1'b0}}};

    reg [31:0]   frames_reg;                            // frames that are not part of open_reg yet
    reg [OW-1:0] open_reg;                              // words that belong to no burst yet
    reg [AW-1:0] addr_reg;
    reg [BW-1:0] words_reg;
    reg          valid_reg;

    // Fill before cutting, so that a burst has all words that it can have.
    wire          fill = frames_reg != 32'd0 && open_reg < MOST;
    wire          cut  = !fill && !valid_reg && open_reg != {OW{1'b0}};
    wire [PAGE:0] room = PAGE_END - {1'b0, addr_reg[PAGE-1:0]};
    wire [BW-1:0] most = (open_reg < MOST) ? open_reg[BW-1:0] : LIMIT[BW-1:0];
    wire [BW-1:0] words;
    generate
        if (PAGE + 1 > BW) begin : long_page
            assign words = (room < {{PAGE+1-BW{1'b0}}, most}) ? room[BW-1:0] : most;
        end else begin : short_page
            wire [BW:0] wide = {{BW-PAGE{1'b0}}, room};
            assign words = (wide[BW-1:0] < most) ? wide[BW-1:0] : most;
            wire unused_wide = &{1'b0, wide};
        end
    endgenerate

    assign left    = frames_reg != 32'd0 || open_reg != {OW{1'b0}} || valid_reg;
    assign m_addr  = {addr_reg, {SHIFT{1'b0}}};
    assign m_words = words_reg;
    assign m_valid = valid_reg;

    always @(posedge clk) begin
        if (fill) begin
            frames_reg <= frames_reg - 1'b1;
            open_reg   <= open_reg + FRAME;
        end
        if (cut) begin
            words_reg <= words;
            valid_reg <= 1'b1;
            open_reg  <= open_reg - {{OW-BW{1'b0}}, words};
        end
        if (m_valid && m_ready) begin
            addr_reg  <= addr_reg + {{AW-BW{1'b0}}, words_reg};
            valid_reg <= 1'b0;
        end
        if (start) begin
            addr_reg   <= base[ADDR_W-1:SHIFT];
            frames_reg <= count;
        end
        if (rst) begin
            frames_reg <= 32'd0;
            open_reg   <= {OW{1'b0}};
            valid_reg  <= 1'b0;
        end
    end

    wire unused = &{1'b0, base[SHIFT-1:0]};
endmodule
`default_nettype wire
