// hg_dma_engine: Moves the frames of a job from memory to a core and back.
//
// Purpose     Part of hg_dma, and of kernels for Vitis: reads `count` frames at `source`, sends them to the
//             core, and writes its output frames at `target`.
// Parameters  ADDR_W     Bits of a byte address in memory, 13 to 64.
//             DATA_W     Bits of a word of memory and of both streams: 32, 64 ... 1024.
//             IN_WORDS   Words of an input frame of the core. 0: it has no input here, only an output.
//             OUT_WORDS  Words of an output frame. 0: no output here. One of both is greater than 0.
//             BURST      Longest burst in words, a power of two, 2 to 256.
// Latency     The first read request appears 4 cycles after `start`.
// Contract    A pulse of `start` begins a job, which reads `source`, `target`, `count` and `sequence_start`
//             in the same cycle. Between jobs `active` is 0; it is 1 from the next cycle on until the job
//             ends: memory has acknowledged all output frames; without an output, the core has accepted all
//             input frames. `count` is greater than 0, addresses are multiples of a word. Frames follow each
//             other in memory without gaps. `read_failed` and `write_failed` are pulses for error responses,
//             which end nothing; `misplaced` for tlast of the core at a wrong word. `sent` and `received`
//             count frames. m_axis_tuser is 1 with the first word of a job with `sequence_start`. No burst
//             crosses 4 KB. Bursts are requested when their words have room or are here: the bus never waits
//             for the core.
`default_nettype none
module hg_dma_engine #(
    parameter integer ADDR_W    = 32,
    parameter integer DATA_W    = 32,
    parameter integer IN_WORDS  = 16,
    parameter integer OUT_WORDS = 5,
    parameter integer BURST     = 16
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                start,
    input  wire [ADDR_W-1:0]   source,
    input  wire [ADDR_W-1:0]   target,
    input  wire [31:0]         count,
    input  wire                sequence_start,
    output wire                active,
    output wire                read_failed,
    output wire                write_failed,
    output wire                misplaced,
    output wire [31:0]         sent,
    output wire [31:0]         received,
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
    localparam [1:0] INCR = 2'b01;
    localparam [3:0] BUFFERABLE_MODIFIABLE = 4'b0011;   // lets an interconnect change widths and lengths

    reg sequence_reg;
    always @(posedge clk) begin
        if (m_axis_tvalid && m_axis_tready) sequence_reg <= 1'b0;
        if (start) sequence_reg <= sequence_start;
        if (rst) sequence_reg <= 1'b0;
    end
    assign m_axis_tuser = sequence_reg;

    generate
        if (IN_WORDS != 0) begin : with_input
            hg_dma_read #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .WORDS(IN_WORDS), .BURST(BURST)) reader (
                .clk(clk), .rst(rst), .start(start), .base(source), .count(count), .sent(sent),
                .failed(read_failed),
                .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arvalid(m_axi_arvalid),
                .m_axi_arready(m_axi_arready), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
                .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready),
                .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready),
                .m_axis_tlast(m_axis_tlast)
            );
        end else begin : without_input
            assign {m_axi_araddr, m_axi_arlen, m_axi_arvalid, m_axi_rready} = {ADDR_W+10{1'b0}};
            assign {m_axis_tdata, m_axis_tvalid, m_axis_tlast} = {DATA_W+2{1'b0}};
            assign {sent, read_failed} = 33'd0;
            wire unused = &{1'b0, m_axi_arready, m_axi_rdata, m_axi_rresp, m_axi_rvalid, source};
        end
        if (OUT_WORDS != 0) begin : with_output
            hg_dma_write #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .WORDS(OUT_WORDS), .BURST(BURST)) writer (
                .clk(clk), .rst(rst), .start(start), .base(target), .count(count), .active(active),
                .received(received), .failed(write_failed), .misplaced(misplaced),
                .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen), .m_axi_awvalid(m_axi_awvalid),
                .m_axi_awready(m_axi_awready), .m_axi_wdata(m_axi_wdata), .m_axi_wstrb(m_axi_wstrb),
                .m_axi_wlast(m_axi_wlast), .m_axi_wvalid(m_axi_wvalid), .m_axi_wready(m_axi_wready),
                .m_axi_bresp(m_axi_bresp), .m_axi_bvalid(m_axi_bvalid), .m_axi_bready(m_axi_bready),
                .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
                .s_axis_tlast(s_axis_tlast)
            );
        end else begin : without_output
            reg [31:0] count_reg;
            always @(posedge clk) begin
                if (start) count_reg <= count;
                if (rst) count_reg <= 32'd0;
            end
            assign active = sent != count_reg;
            assign {m_axi_awaddr, m_axi_awlen, m_axi_awvalid} = {ADDR_W+9{1'b0}};
            assign {m_axi_wdata, m_axi_wstrb, m_axi_wlast, m_axi_wvalid} = {DATA_W+BYTES+2{1'b0}};
            assign {m_axi_bready, s_axis_tready, received, write_failed, misplaced} = 36'd0;
            wire unused = &{1'b0, m_axi_awready, m_axi_wready, m_axi_bresp, m_axi_bvalid, s_axis_tdata,
                            s_axis_tvalid, s_axis_tlast, target};
        end
    endgenerate

    assign m_axi_arid    = 1'b0;
    assign m_axi_arsize  = SHIFT[2:0];
    assign m_axi_arburst = INCR;
    assign m_axi_arcache = BUFFERABLE_MODIFIABLE;
    assign m_axi_arprot  = 3'b000;
    assign m_axi_awid    = 1'b0;
    assign m_axi_awsize  = SHIFT[2:0];
    assign m_axi_awburst = INCR;
    assign m_axi_awcache = BUFFERABLE_MODIFIABLE;
    assign m_axi_awprot  = 3'b000;

    wire unused = &{1'b0, m_axi_rid, m_axi_rlast, m_axi_bid};
endmodule
`default_nettype wire
