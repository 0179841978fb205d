// hg_control: Control and status of a core, with an AXI4-Lite port.
//
// Purpose     Identifies the core and counts frames and errors.
// Parameters  VERSION  Compiler version: major, minor and patch level, 8 bits each.
//             MODEL    First 32 bits of the SHA-256 of the model file.
//             INPUTS   Input ports. The first port is at bit 0 of in_*.
//             OUTPUTS  Output ports. The first port is at bit 0 of out_*.
//             WORDS    Words of a frame at each input port, 32 bits each, the first port in the low bits.
// Registers   0 CONTROL: while bit 0 is 1, both counters are held at 0.
//             4 VERSION.
//             8 MODEL.
//             12 FRAMES: frames that have left all output ports.
//             16 ERRORS: input frames with a word whose tlast did not match the count, over all ports.
//             Registers 4 to 16 are read-only. Counters saturate.
// Latency     The latency of hg_axil_regs. A counter shows a frame in the second cycle after its last word.
// Contract    Observes all ports (*_valid, *_ready, *_last) and changes nothing there. Reset clears all
//             registers.
`default_nettype none
module hg_control #(
    parameter [31:0]  VERSION = 32'h0,
    parameter [31:0]  MODEL   = 32'h0,
    parameter integer INPUTS  = 1,
    parameter integer OUTPUTS = 1,
    parameter [32*INPUTS-1:0] WORDS = {INPUTS{32'd4}}
) (
    input  wire        clk,
    input  wire        rst,
    input  wire [INPUTS-1:0]  in_valid,
    input  wire [INPUTS-1:0]  in_ready,
    input  wire [INPUTS-1:0]  in_last,
    input  wire [OUTPUTS-1:0] out_valid,
    input  wire [OUTPUTS-1:0] out_ready,
    input  wire [OUTPUTS-1:0] out_last,
    input  wire [4:0]  s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire [3:0]  s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [1:0]  s_axil_bresp,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [4:0]  s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready
);
    wire unused_start;
    hg_control_starts #(
        .VERSION(VERSION), .MODEL(MODEL), .INPUTS(INPUTS), .OUTPUTS(OUTPUTS), .STARTS(0), .WORDS(WORDS)
    ) registers (
        .start(unused_start), .started(1'b0),
        .clk(clk), .rst(rst), .in_valid(in_valid),
        .in_ready(in_ready), .in_last(in_last), .out_valid(out_valid),
        .out_ready(out_ready), .out_last(out_last), .s_axil_awaddr(s_axil_awaddr),
        .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready), .s_axil_wdata(s_axil_wdata),
        .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready),
        .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready),
        .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid), .s_axil_arready(s_axil_arready),
        .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp), .s_axil_rvalid(s_axil_rvalid),
        .s_axil_rready(s_axil_rready)
    );
    wire unused = &{1'b0, unused_start};
endmodule
`default_nettype wire
