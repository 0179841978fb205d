// hg_dma_write: Writes the output frames of a core to memory.
//
// Purpose     Part of hg_dma: the stream from the core, and the write channels of the AXI4 master.
// Parameters  ADDR_W  Bits of a byte address.
//             DATA_W  Bits of a word of memory and of the stream.
//             WORDS   Words of a frame.
//             BURST   Longest burst in words, a power of two.
// Latency     A burst is requested 2 cycles after its last word arrives, if the previous one has been sent.
//             Words of a burst follow each other without gaps, and bursts do.
// Contract    A burst is requested when all its words are here, so m_axi_wvalid never waits for the core. All
//             bytes of a word are written. m_axi_bready is always 1. At most 255 bursts wait for responses.
//             An error response ends nothing: `failed` is 1 with it. `misplaced` is 1 with a word whose tlast
//             does not match the count. `active` is 1 from start until memory has answered the last burst.
//             Outside of a job the core's words wait. `received` counts the core's frames since start.
`default_nettype none
module hg_dma_write #(
    parameter integer ADDR_W = 32,
    parameter integer DATA_W = 32,
    parameter integer WORDS  = 5,
    parameter integer BURST  = 16
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                start,
    input  wire [ADDR_W-1:0]   base,
    input  wire [31:0]         count,
    output wire                active,
    output wire [31:0]         received,
    output wire                failed,
    output wire                misplaced,
    output wire [ADDR_W-1:0]   m_axi_awaddr,
    output wire [7:0]          m_axi_awlen,
    output wire                m_axi_awvalid,
    input  wire                m_axi_awready,
    output wire [DATA_W-1:0]   m_axi_wdata,
    output wire [DATA_W/8-1:0] m_axi_wstrb,
    output wire                m_axi_wlast,
    output wire                m_axi_wvalid,
    input  wire                m_axi_wready,
    input  wire [1:0]          m_axi_bresp,
    input  wire                m_axi_bvalid,
    output wire                m_axi_bready,
    input  wire [DATA_W-1:0]   s_axis_tdata,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast
);
    localparam integer DEPTH = 2 * BURST;
    localparam integer BW    = $clog2(BURST) + 1;
    localparam integer WW    = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam [WW-1:0] LAST = WORDS[WW-1:0] - 1'b1;
    localparam [BW-1:0] ONE  = {{BW-1{1'b0}}, 1'b1};

    // ---- Words of the core ----
    reg  [WW-1:0] word_reg;
    reg  [31:0]   received_reg, expected_reg;
    wire          room;
    wire          expect_some = expected_reg != 32'd0;
    wire          take = s_axis_tvalid && s_axis_tready;
    wire          last = word_reg == LAST;

    assign s_axis_tready = room && expect_some;
    assign misplaced     = take && s_axis_tlast != last;
    assign received      = received_reg;

    wire stored;
    wire pop = m_axi_wvalid && m_axi_wready;
    hg_fifo #(.WIDTH(DATA_W), .DEPTH(DEPTH)) fifo (
        .clk(clk), .rst(rst),
        .s_data(s_axis_tdata), .s_valid(s_axis_tvalid && expect_some), .s_ready(room),
        .m_data(m_axi_wdata), .m_valid(stored), .m_ready(pop)
    );

    always @(posedge clk) begin
        if (take) word_reg <= last ? {WW{1'b0}} : word_reg + 1'b1;
        if (take && last) begin
            received_reg <= received_reg + 1'b1;
            expected_reg <= expected_reg - 1'b1;
        end
        if (start) begin
            received_reg <= 32'd0;
            expected_reg <= count;
        end
        if (rst) begin
            word_reg     <= {WW{1'b0}};
            received_reg <= 32'd0;
            expected_reg <= 32'd0;
        end
    end

    // ---- Bursts ----
    wire [ADDR_W-1:0] burst_addr;
    wire [BW-1:0]     burst_words;
    wire              burst_valid, left;
    reg  [BW:0]       there_reg;                        // words of the FIFO that belong to no burst yet
    reg  [ADDR_W-1:0] awaddr_reg;
    reg  [BW-1:0]     awwords_reg, beats_reg;           // of the request; of the burst that has not been sent
    reg               awvalid_reg, wvalid_reg;
    reg  [7:0]        waiting_reg;                      // bursts without response
    wire              sent  = pop && m_axi_wlast;
    wire              full  = waiting_reg == 8'hFF;
    wire              free  = (!awvalid_reg || m_axi_awready) && (!wvalid_reg || sent) && !full;
    wire              fits  = there_reg >= {1'b0, burst_words};
    wire              ask   = burst_valid && fits && free;
    wire [BW-1:0]     awlen = awwords_reg - 1'b1;

    hg_dma_bursts #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .WORDS(WORDS), .BURST(BURST)) bursts (
        .clk(clk), .rst(rst), .start(start), .base(base), .count(count), .left(left),
        .m_addr(burst_addr), .m_words(burst_words), .m_valid(burst_valid), .m_ready(fits && free)
    );

    assign active        = left || awvalid_reg || wvalid_reg || waiting_reg != 8'd0;
    assign m_axi_awaddr  = awaddr_reg;
    assign m_axi_awlen   = {{9-BW{1'b0}}, awlen[BW-2:0]};
    assign m_axi_awvalid = awvalid_reg;
    assign m_axi_wstrb   = {DATA_W/8{1'b1}};
    assign m_axi_wlast   = beats_reg == ONE;
    assign m_axi_wvalid  = wvalid_reg;
    assign m_axi_bready  = 1'b1;
    assign failed        = m_axi_bvalid && m_axi_bresp[1];

    always @(posedge clk) begin
        if (m_axi_awready) awvalid_reg <= 1'b0;
        if (sent) wvalid_reg <= 1'b0;
        if (pop) beats_reg <= beats_reg - 1'b1;
        if (ask) begin
            awaddr_reg  <= burst_addr;
            awwords_reg <= burst_words;
            beats_reg   <= burst_words;
            awvalid_reg <= 1'b1;
            wvalid_reg  <= 1'b1;
        end
        there_reg   <= there_reg + {{BW{1'b0}}, take} - (ask ? {1'b0, burst_words} : {BW+1{1'b0}});
        waiting_reg <= waiting_reg + {7'd0, ask} - {7'd0, m_axi_bvalid};
        if (rst) begin
            awvalid_reg <= 1'b0;
            wvalid_reg  <= 1'b0;
            there_reg   <= {BW+1{1'b0}};
            waiting_reg <= 8'd0;
        end
    end

    wire unused = &{1'b0, stored, awlen[BW-1], m_axi_bresp[0]};
endmodule
`default_nettype wire
