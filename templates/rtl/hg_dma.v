// hg_dma: Moves frames from memory to a core and back, controlled by registers.
//
// Purpose     A job reads FRAMES frames at SRC, sends them to the core, and writes its output frames at DST.
// Parameters  ADDR_W     Bits of a byte address in memory, 13 to 64.
//             DATA_W     Bits of a word of memory and of both streams: 32, 64 ... 1024.
//             IN_WORDS   Words of an input frame of the core. 0: it has no input here, only an output.
//             OUT_WORDS  Words of an output frame. 0: no output here. One of both is greater than 0.
//             BURST      Longest burst in words, a power of two, 2 to 256.
// Registers   0x00 CONTROL: bit 0 START (reads as 0), bit 1 IRQ_ENABLE, bit 2 SEQUENCE:
//             written as 1, the first frame of the next job starts a sequence; 1 until that job starts, and a
//             write of 0 keeps it.
//             0x04 STATUS: bit 0 BUSY; bit 1 DONE, cleared by writing 1; bit 2 an error response to a read,
//             bit 3 to a write; bit 4 tlast of the core at a wrong word; bit 5 START was refused.
//             0x08, 0x0C SRC, low and high half. 0x10, 0x14 DST. 0x18 FRAMES.
//             0x1C SENT: frames of the job that the core has accepted. 0x20 RECEIVED: frames that it has
//             emitted. 0x24 CYCLES of the job. 0x28 IN_BYTES, 0x2C OUT_BYTES: bytes of a frame in memory.
//             Registers 0x1C to 0x2C are read-only.
// Latency     The first read request appears 4 cycles after START is written to the registers.
// Contract    Frames follow each other in memory without gaps, each in whole words. START is refused, and
//             changes nothing else, while a job runs, if FRAMES is 0, or if an address is not a multiple of a
//             word. START clears DONE and bits 2 to 5 of STATUS. A job reads SRC, DST and FRAMES when it
//             starts. DONE: memory has acknowledged all output frames; without an output, the core has
//             accepted all input frames. m_axis_tuser is 1 with the first word of a job with SEQUENCE.
//             irq = DONE && IRQ_ENABLE. No burst crosses 4 KB. Bursts are requested when their words have
//             room or are here: the bus never waits for the core. Error responses end nothing: the job goes
//             on to its end. Reset ends a job; memory has to be reset with it, or to have no access in
//             progress.
`default_nettype none
module hg_dma #(
    parameter integer ADDR_W    = 32,
    parameter integer DATA_W    = 32,
    parameter integer IN_WORDS  = 16,
    parameter integer OUT_WORDS = 5,
    parameter integer BURST     = 16
) (
    input  wire                clk,
    input  wire                rst,
    output wire                irq,
    input  wire [5:0]          s_axil_awaddr,
    input  wire                s_axil_awvalid,
    output wire                s_axil_awready,
    input  wire [31:0]         s_axil_wdata,
    input  wire [3:0]          s_axil_wstrb,
    input  wire                s_axil_wvalid,
    output wire                s_axil_wready,
    output wire [1:0]          s_axil_bresp,
    output wire                s_axil_bvalid,
    input  wire                s_axil_bready,
    input  wire [5:0]          s_axil_araddr,
    input  wire                s_axil_arvalid,
    output wire                s_axil_arready,
    output wire [31:0]         s_axil_rdata,
    output wire [1:0]          s_axil_rresp,
    output wire                s_axil_rvalid,
    input  wire                s_axil_rready,
    output wire                m_axi_arid,
    output wire [ADDR_W-1:0]   m_axi_araddr,
    output wire [7:0]          m_axi_arlen,
    output wire [2:0]          m_axi_arsize,
    output wire [1:0]          m_axi_arburst,
    output wire [3:0]          m_axi_arcache,
    output wire [2:0]          m_axi_arprot,
    output wire                m_axi_arvalid,
    input  wire                m_axi_arready,
    input  wire                m_axi_rid,
    input  wire [DATA_W-1:0]   m_axi_rdata,
    input  wire [1:0]          m_axi_rresp,
    input  wire                m_axi_rlast,
    input  wire                m_axi_rvalid,
    output wire                m_axi_rready,
    output wire                m_axi_awid,
    output wire [ADDR_W-1:0]   m_axi_awaddr,
    output wire [7:0]          m_axi_awlen,
    output wire [2:0]          m_axi_awsize,
    output wire [1:0]          m_axi_awburst,
    output wire [3:0]          m_axi_awcache,
    output wire [2:0]          m_axi_awprot,
    output wire                m_axi_awvalid,
    input  wire                m_axi_awready,
    output wire [DATA_W-1:0]   m_axi_wdata,
    output wire [DATA_W/8-1:0] m_axi_wstrb,
    output wire                m_axi_wlast,
    output wire                m_axi_wvalid,
    input  wire                m_axi_wready,
    input  wire                m_axi_bid,
    input  wire [1:0]          m_axi_bresp,
    input  wire                m_axi_bvalid,
    output wire                m_axi_bready,
    output wire [DATA_W-1:0]   m_axis_tdata,
    output wire                m_axis_tvalid,
    input  wire                m_axis_tready,
    output wire                m_axis_tlast,
    output wire                m_axis_tuser,
    input  wire [DATA_W-1:0]   s_axis_tdata,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast
);
    localparam integer BYTES = DATA_W / 8;
    localparam integer SHIFT = $clog2(BYTES);
    localparam integer IN_BYTES  = IN_WORDS * BYTES;
    localparam integer OUT_BYTES = OUT_WORDS * BYTES;

    wire              start, active, read_failed, write_failed, misplaced, sequence_start;
    wire [ADDR_W-1:0] source, target;
    wire [31:0]       count, sent, received;

    hg_dma_regs #(
        .ADDR_W(ADDR_W), .WORD_BITS(SHIFT), .IN_BYTES(IN_BYTES[31:0]), .OUT_BYTES(OUT_BYTES[31:0])
    ) regs (
        .clk(clk), .rst(rst),
        .start(start), .source(source), .target(target), .count(count),
        .sequence_start(sequence_start), .active(active),
        .read_failed(read_failed), .write_failed(write_failed), .misplaced(misplaced),
        .sent(sent), .received(received), .irq(irq),
        .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
        .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
        .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
        .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
        .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready)
    );

    hg_dma_engine #(
        .ADDR_W(ADDR_W), .DATA_W(DATA_W), .IN_WORDS(IN_WORDS), .OUT_WORDS(OUT_WORDS), .BURST(BURST)
    ) engine (
        .clk(clk), .rst(rst), .start(start), .source(source), .target(target), .count(count),
        .sequence_start(sequence_start), .active(active), .read_failed(read_failed),
        .write_failed(write_failed), .misplaced(misplaced), .sent(sent), .received(received),
        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst), .m_axi_arcache(m_axi_arcache),
        .m_axi_arprot(m_axi_arprot), .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready),
        .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready),
        .m_axi_awid(m_axi_awid),
        .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen), .m_axi_awsize(m_axi_awsize),
        .m_axi_awburst(m_axi_awburst), .m_axi_awcache(m_axi_awcache), .m_axi_awprot(m_axi_awprot),
        .m_axi_awvalid(m_axi_awvalid), .m_axi_awready(m_axi_awready), .m_axi_wdata(m_axi_wdata),
        .m_axi_wstrb(m_axi_wstrb), .m_axi_wlast(m_axi_wlast), .m_axi_wvalid(m_axi_wvalid),
        .m_axi_wready(m_axi_wready), .m_axi_bid(m_axi_bid), .m_axi_bresp(m_axi_bresp),
        .m_axi_bvalid(m_axi_bvalid), .m_axi_bready(m_axi_bready), .m_axis_tdata(m_axis_tdata),
        .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast),
        .m_axis_tuser(m_axis_tuser), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast)
    );
endmodule
`default_nettype wire
