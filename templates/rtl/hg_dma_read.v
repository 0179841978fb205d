// hg_dma_read: Reads the frames of a job from memory and streams them to a core.
//
// Purpose     Part of hg_dma: the read channels of the AXI4 master, and the stream to the core.
// Parameters  ADDR_W  Bits of a byte address.
//             DATA_W  Bits of a word of memory and of the stream.
//             WORDS   Words of a frame.
//             BURST   Longest burst in words, a power of two.
// Latency     A word is offered to the core 1 cycle after memory delivers it. The first request appears 4
//             cycles after start, later ones at most every other cycle.
// Contract    Frames are whole words; tlast marks the last word of each. A burst is requested when all its
//             words have room here, so m_axi_rready is always 1. A burst with an error response ends nothing:
//             `failed` is 1 with each such word. `sent` counts frames accepted by the core since start.
`default_nettype none
module hg_dma_read #(
    parameter integer ADDR_W = 32,
    parameter integer DATA_W = 32,
    parameter integer WORDS  = 16,
    parameter integer BURST  = 16
) (
    input  wire              clk,
    input  wire              rst,
    input  wire              start,
    input  wire [ADDR_W-1:0] base,
    input  wire [31:0]       count,
    output wire [31:0]       sent,
    output wire              failed,
    output wire [ADDR_W-1:0] m_axi_araddr,
    output wire [7:0]        m_axi_arlen,
    output wire              m_axi_arvalid,
    input  wire              m_axi_arready,
    input  wire [DATA_W-1:0] m_axi_rdata,
    input  wire [1:0]        m_axi_rresp,
    input  wire              m_axi_rvalid,
    output wire              m_axi_rready,
    output wire [DATA_W-1:0] m_axis_tdata,
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast
);
    localparam integer DEPTH = 2 * BURST;
    localparam integer BW    = $clog2(BURST) + 1;
    localparam integer WW    = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam [WW-1:0] LAST  = WORDS[WW-1:0] - 1'b1;
    localparam [BW:0]   EMPTY = DEPTH[BW:0];

    // ---- Requests ----
    wire [ADDR_W-1:0] burst_addr;
    wire [BW-1:0]     burst_words;
    wire              burst_valid, left;
    reg  [BW:0]       room_reg;                         // words of the FIFO that no burst has been promised
    reg  [ADDR_W-1:0] araddr_reg;
    reg  [BW-1:0]     arwords_reg;
    reg               arvalid_reg;
    wire              free = !arvalid_reg || m_axi_arready;
    wire              fits = room_reg >= {1'b0, burst_words};
    wire              ask  = burst_valid && fits && free;
    wire              pop  = m_axis_tvalid && m_axis_tready;
    wire [BW-1:0]     arlen = arwords_reg - 1'b1;

    hg_dma_bursts #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .WORDS(WORDS), .BURST(BURST)) bursts (
        .clk(clk), .rst(rst), .start(start), .base(base), .count(count), .left(left),
        .m_addr(burst_addr), .m_words(burst_words), .m_valid(burst_valid), .m_ready(fits && free)
    );

    assign m_axi_araddr  = araddr_reg;
    assign m_axi_arlen   = {{9-BW{1'b0}}, arlen[BW-2:0]};
    assign m_axi_arvalid = arvalid_reg;

    always @(posedge clk) begin
        if (free) begin
            araddr_reg  <= burst_addr;
            arwords_reg <= burst_words;
            arvalid_reg <= ask;
        end
        room_reg <= room_reg + {{BW{1'b0}}, pop} - (ask ? {1'b0, burst_words} : {BW+1{1'b0}});
        if (rst) begin
            arvalid_reg <= 1'b0;
            room_reg    <= EMPTY;
        end
    end

    // ---- Words ----
    wire always_room;
    assign m_axi_rready = 1'b1;
    assign failed       = m_axi_rvalid && m_axi_rresp[1];

    hg_fifo #(.WIDTH(DATA_W), .DEPTH(DEPTH)) fifo (
        .clk(clk), .rst(rst),
        .s_data(m_axi_rdata), .s_valid(m_axi_rvalid), .s_ready(always_room),
        .m_data(m_axis_tdata), .m_valid(m_axis_tvalid), .m_ready(m_axis_tready)
    );

    reg [WW-1:0] word_reg;
    reg [31:0]   sent_reg;
    assign m_axis_tlast = word_reg == LAST;
    assign sent         = sent_reg;

    always @(posedge clk) begin
        if (pop) word_reg <= m_axis_tlast ? {WW{1'b0}} : word_reg + 1'b1;
        if (start) sent_reg <= 32'd0;
        else if (pop && m_axis_tlast) sent_reg <= sent_reg + 1'b1;
        if (rst) begin
            word_reg <= {WW{1'b0}};
            sent_reg <= 32'd0;
        end
    end

    wire unused = &{1'b0, left, always_room, arlen[BW-1], m_axi_rresp[0]};
endmodule
`default_nettype wire
