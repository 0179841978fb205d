// hg_control: control and status of a core, behind an AXI4-Lite port.
//
// Purpose     says what the core is, and counts frames and errors.
// Parameters  VERSION  of the compiler: major, minor and patch level, 8 bits each
//             MODEL    first 32 bits of the SHA-256 of the model's file
//             WORDS    words of a frame at the input port
// Registers   0 CONTROL, bit 0: while it is 1, both counters stand at 0; 4 VERSION; 8 MODEL;
//             12 FRAMES, that left the output port; 16 ERRORS, frames of the input port with a word
//             whose tlast did not match the count. 4 to 16 can only be read. Counters stop at the top.
// Latency     that of hg_axil_regs; a counter shows a frame in the second cycle after its last word
// Contract    watches both ports (*_valid, *_ready, *_last), and changes nothing there. Reset clears all.
`default_nettype none
module hg_control #(
    parameter [31:0]  VERSION = 32'h0,
    parameter [31:0]  MODEL   = 32'h0,
    parameter integer WORDS   = 4
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        in_valid,
    input  wire        in_ready,
    input  wire        in_last,
    input  wire        out_valid,
    input  wire        out_ready,
    input  wire        out_last,
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
    localparam integer WW = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam [WW-1:0] LAST = WORDS[WW-1:0] - 1'b1;

    wire [31:0] control;
    wire        clear = control[0];
    reg  [31:0] frames_reg, errors_reg;

    hg_axil_regs #(.WORDS(1), .STATUS(4), .ADDR_W(5), .MASK(32'h1)) regs (
        .clk(clk), .rst(rst),
        .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
        .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
        .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
        .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
        .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),
        .values(control), .status({errors_reg, frames_reg, MODEL, VERSION})
    );

    // The port is looked at a cycle later: nothing here is in its paths.
    reg          taken_reg, wrong_reg, end_reg, sent_reg;
    reg          bad_reg;
    reg [WW-1:0] word_reg;
    wire         last = word_reg == LAST;
    wire         take = in_valid && in_ready;

    always @(posedge clk) begin
        taken_reg <= take;
        wrong_reg <= in_last != last;
        end_reg   <= last;
        sent_reg  <= out_valid && out_ready && out_last;
        if (take) word_reg <= last ? {WW{1'b0}} : word_reg + 1'b1;
        if (taken_reg) bad_reg <= !end_reg && (bad_reg || wrong_reg);
        if (sent_reg && frames_reg != 32'hFFFFFFFF) frames_reg <= frames_reg + 1'b1;
        if (taken_reg && end_reg && (bad_reg || wrong_reg) && errors_reg != 32'hFFFFFFFF)
            errors_reg <= errors_reg + 1'b1;
        if (rst || clear) begin
            frames_reg <= 32'd0;
            errors_reg <= 32'd0;
        end
        if (rst) begin
            taken_reg <= 1'b0;
            sent_reg  <= 1'b0;
            bad_reg   <= 1'b0;
            word_reg  <= {WW{1'b0}};
        end
    end

    wire unused = &{1'b0, control[31:1]};
endmodule
`default_nettype wire
