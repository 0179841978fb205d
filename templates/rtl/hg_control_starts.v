// hg_control_starts: hg_control with a bit that starts a sequence of frames.
//
// Purpose     Identifies the core and counts frames and errors.
// Parameters  VERSION  Compiler version: major, minor and patch level, 8 bits each.
//             MODEL    First 32 bits of the SHA-256 of the model file.
//             INPUTS   Input ports. The first port is at bit 0 of in_*.
//             OUTPUTS  Output ports. The first port is at bit 0 of out_*.
//             STARTS   1: bit 1 of CONTROL works. 0: it is 0.
//             WORDS    Words of a frame at each input port, 32 bits each, the first port in the low bits.
// Registers   0 CONTROL: while bit 0 is 1, both counters are held at 0. Bit 1, written as 1, makes the next
//             frame start a sequence: it stays 1 until that frame's first word, and a write of 0 keeps it.
//             4 VERSION.
//             8 MODEL.
//             12 FRAMES: frames that have left all output ports.
//             16 ERRORS: input frames with a word whose tlast did not match the count, over all ports.
//             Registers 4 to 16 are read-only. Counters saturate.
// Latency     The latency of hg_axil_regs. A counter shows a frame in the second cycle after its last word.
// Contract    `start` is bit 1 of CONTROL, and `started` clears it: it is 1 in the cycle in which the first
//             word of a frame is accepted. Observes all ports (*_valid, *_ready, *_last) and changes nothing
//             there. Reset clears all registers.
`default_nettype none
module hg_control_starts #(
    parameter [31:0]  VERSION = 32'h0,
    parameter [31:0]  MODEL   = 32'h0,
    parameter integer INPUTS  = 1,
    parameter integer OUTPUTS = 1,
    parameter integer STARTS  = 1,
    parameter [32*INPUTS-1:0] WORDS = {INPUTS{32'd4}}
) (
    input  wire        clk,
    input  wire        rst,
    output wire        start,
    input  wire        started,
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
    wire [31:0] control;
    wire        clear = control[0];
    assign      start = control[1];
    reg  [31:0] frames_reg, errors_reg;

    localparam [31:0] MASK = (STARTS != 0) ? 32'h3 : 32'h1;
    hg_axil_regs #(.WORDS(1), .STATUS(4), .ADDR_W(5), .MASK(MASK), .HELD(32'h2)) regs (
        .clk(clk), .rst(rst), .cleared({30'd0, started, 1'b0}),
        .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
        .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid),
        .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid),
        .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid),
        .s_axil_arready(s_axil_arready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),
        .values(control), .status({errors_reg, frames_reg, MODEL, VERSION})
    );

    // Ports are observed one cycle later, to stay out of their paths.
    wire [INPUTS-1:0] wrong;
    genvar g;
    generate
        for (g = 0; g < INPUTS; g = g + 1) begin : at_input
            localparam [31:0]    COUNT = WORDS[32*g +: 32];
            localparam integer   WW    = (COUNT <= 1) ? 1 : $clog2(COUNT);
            localparam [WW-1:0]  LAST  = COUNT[WW-1:0] - 1'b1;
            reg          taken_reg, wrong_reg, end_reg, bad_reg;
            reg [WW-1:0] word_reg;
            wire         last = word_reg == LAST;
            wire         take = in_valid[g] && in_ready[g];
            assign wrong[g] = taken_reg && end_reg && (bad_reg || wrong_reg);

            always @(posedge clk) begin
                taken_reg <= take;
                wrong_reg <= in_last[g] != last;
                end_reg   <= last;
                if (take) word_reg <= last ? {WW{1'b0}} : word_reg + 1'b1;
                if (taken_reg) bad_reg <= !end_reg && (bad_reg || wrong_reg);
                if (rst) begin
                    taken_reg <= 1'b0;
                    bad_reg   <= 1'b0;
                    word_reg  <= {WW{1'b0}};
                end
            end
        end
    endgenerate

    // A frame counts when it has left the last output port. Per port, ahead_reg counts the frames that left
    // there early.
    reg  [OUTPUTS-1:0] sent_reg;
    wire [OUTPUTS-1:0] there;
    wire               done = &there;
    always @(posedge clk) sent_reg <= rst ? {OUTPUTS{1'b0}} : out_valid & out_ready & out_last;
    generate
        if (OUTPUTS == 1) begin : one
            assign there = sent_reg;
        end else begin : several
            for (g = 0; g < OUTPUTS; g = g + 1) begin : at_output
                reg [31:0] ahead_reg;
                assign there[g] = sent_reg[g] || ahead_reg != 32'd0;
                always @(posedge clk)
                    if (rst) ahead_reg <= 32'd0;
                    else ahead_reg <= ahead_reg + {31'd0, sent_reg[g]} - {31'd0, done};
            end
        end
    endgenerate

    // Several ports can end a wrong frame in the same cycle.
    reg [32:0] errors;
    integer    i;
    always @* begin
        errors = {1'b0, errors_reg};
        for (i = 0; i < INPUTS; i = i + 1) errors = errors + {32'd0, wrong[i] && !errors[32]};
    end

    always @(posedge clk) begin
        if (done && frames_reg != 32'hFFFFFFFF) frames_reg <= frames_reg + 1'b1;
        errors_reg <= errors[32] ? 32'hFFFFFFFF : errors[31:0];
        if (rst || clear) begin
            frames_reg <= 32'd0;
            errors_reg <= 32'd0;
        end
    end

    wire unused = &{1'b0, control[31:2]};
endmodule
`default_nettype wire
