// hg_kernel_regs: Registers of a kernel for Vitis, with an AXI4-Lite port (ap_ctrl_hs).
//
// Purpose     Starts the jobs of one or several hg_dma_engine together, as the Xilinx Runtime (XRT) expects
//             it.
// Parameters  POINTERS   Number of addresses in memory, 64 bits each.
//             WORD_BITS  Address bits within a word, which have to be 0: log2 of the bytes of the widest
//                        word.
// Registers   0x00 CONTROL: bit 0 ap_start, 1 until the job ends; bit 1 ap_done and bit 3 ap_ready, 1 from
//             the end of a job until they are read; bit 2 ap_idle. ap_start is set by writing 1. Automatic
//             restart (bit 7) is not supported.
//             0x04 bit 0: interrupts are enabled. 0x08: bit 0 for ap_done, bit 1 for ap_ready.
//             0x0C: interrupts that are pending, bits as in 0x08; writing 1 inverts a bit.
//             0x10 + 12 K, 0x14 + 12 K: address K, low and high half. With P = 0x10 + 12 POINTERS:
//             P: frames of a job. P + 8: bit 0, the first frame of a job starts a sequence.
//             P + 16, read-only, errors of the last job: bit 0 error response to a read, bit 1 to a write,
//             bit 2 tlast of the core at a wrong word, bit 3 an address is not a multiple of a word.
// Latency     Write: 2 cycles from the later of address and data to the response. Read: 1 cycle.
// Contract    As hg_axil_regs, but all accesses are answered with OKAY: other registers read as 0, and writes
//             to them change nothing. `start` is a pulse; `pointers`, `count` and `sequence_start` are valid
//             with it. `active` rises in the next cycle, and falls at the end of the job. A job of 0 frames,
//             or with an address that is not a multiple of a word, ends at once without `start`. No output
//             depends combinationally on an input other than rst.
`default_nettype none
module hg_kernel_regs #(
    parameter integer POINTERS  = 2,
    parameter integer WORD_BITS = 2
) (
    input  wire                   clk,
    input  wire                   rst,
    output wire                   start,
    output wire [64*POINTERS-1:0] pointers,
    output wire [31:0]            count,
    output wire                   sequence_start,
    input  wire                   active,
    input  wire                   read_failed,
    input  wire                   write_failed,
    input  wire                   misplaced,
    output wire                   irq,
    input  wire [11:0]            s_axil_awaddr,
    input  wire                   s_axil_awvalid,
    output wire                   s_axil_awready,
    input  wire [31:0]            s_axil_wdata,
    input  wire [3:0]             s_axil_wstrb,
    input  wire                   s_axil_wvalid,
    output wire                   s_axil_wready,
    output wire [1:0]             s_axil_bresp,
    output wire                   s_axil_bvalid,
    input  wire                   s_axil_bready,
    input  wire [11:0]            s_axil_araddr,
    input  wire                   s_axil_arvalid,
    output wire                   s_axil_arready,
    output wire [31:0]            s_axil_rdata,
    output wire [1:0]             s_axil_rresp,
    output wire                   s_axil_rvalid,
    input  wire                   s_axil_rready
);
    localparam integer FIRST = 4, FRAMES = FIRST + 3 * POINTERS, OPTIONS = FRAMES + 2, ERRORS = FRAMES + 4;
    localparam [9:0] CONTROL = 10'd0, ENABLE = 10'd1, SOURCES = 10'd2, PENDING = 10'd3;

    // ---- Write: address and data wait for each other, then for the previous response to be accepted ----
    reg [9:0]  aw_reg;
    reg [31:0] w_reg;
    reg [3:0]  strb_reg;
    reg        aw_full_reg, w_full_reg, bvalid_reg;
    wire       write = aw_full_reg && w_full_reg && !bvalid_reg;
    wire [31:0] bits = {{8{strb_reg[3]}}, {8{strb_reg[2]}}, {8{strb_reg[1]}}, {8{strb_reg[0]}}};
    wire [31:0] data = w_reg & bits;

    assign s_axil_awready = !aw_full_reg && !rst;
    assign s_axil_wready  = !w_full_reg && !rst;
    assign s_axil_bvalid  = bvalid_reg;
    assign s_axil_bresp   = 2'b00;

    always @(posedge clk) begin
        if (!aw_full_reg) aw_reg <= s_axil_awaddr[11:2];
        if (!w_full_reg) {strb_reg, w_reg} <= {s_axil_wstrb, s_axil_wdata};
        aw_full_reg <= aw_full_reg ? !write : s_axil_awvalid;
        w_full_reg  <= w_full_reg ? !write : s_axil_wvalid;
        bvalid_reg  <= bvalid_reg ? !s_axil_bready : write;
        if (rst) begin
            aw_full_reg <= 1'b0;
            w_full_reg  <= 1'b0;
            bvalid_reg  <= 1'b0;
        end
    end

    // ---- Arguments: `halves` are the addresses, a word for each half ----
    reg [64*POINTERS-1:0] halves_reg;
    reg [31:0]            frames_reg;
    reg                   sequence_reg;
    reg [WORD_BITS-1:0]   low_bits;
    integer k, n;

    always @(posedge clk) begin
        for (k = 0; k < 2 * POINTERS; k = k + 1)
            if (write && {22'd0, aw_reg} == FIRST + 3 * (k / 2) + k % 2)
                halves_reg[32*k +: 32] <= data | (halves_reg[32*k +: 32] & ~bits);
        if (write && {22'd0, aw_reg} == FRAMES) frames_reg <= data | (frames_reg & ~bits);
        if (write && {22'd0, aw_reg} == OPTIONS && strb_reg[0]) sequence_reg <= w_reg[0];
        if (rst) begin
            halves_reg   <= {64*POINTERS{1'b0}};
            frames_reg   <= 32'd0;
            sequence_reg <= 1'b0;
        end
    end

    always @* begin
        low_bits = {WORD_BITS{1'b0}};
        for (n = 0; n < POINTERS; n = n + 1) low_bits = low_bits | halves_reg[64*n +: WORD_BITS];
    end

    // ---- Jobs ----
    reg       start_reg, busy_reg, fresh_reg, done_reg, ready_reg, enable_reg;
    reg [1:0] sources_reg, pending_reg;
    reg [3:0] errors_reg;                               // unaligned, misplaced, write_failed, read_failed
    reg       rvalid_reg;
    wire      unaligned = low_bits != {WORD_BITS{1'b0}};
    wire      begins    = start_reg && !busy_reg;
    wire      finish    = busy_reg && !fresh_reg && !active;
    wire [1:0] toggled  = (write && aw_reg == PENDING) ? data[1:0] : 2'd0;
    wire      reads     = s_axil_arvalid && s_axil_arready && s_axil_araddr[11:2] == CONTROL;

    assign start          = begins && !unaligned && frames_reg != 32'd0;
    assign pointers       = halves_reg;
    assign count          = frames_reg;
    assign sequence_start = sequence_reg;
    assign irq            = enable_reg && pending_reg != 2'd0;

    always @(posedge clk) begin
        fresh_reg  <= begins;                           // `active` rises one cycle after start
        errors_reg <= errors_reg | {1'b0, misplaced, write_failed, read_failed};
        if (reads) {ready_reg, done_reg} <= 2'b00;
        if (begins) begin
            busy_reg   <= 1'b1;
            errors_reg <= {unaligned, 3'b000};
        end
        if (finish) begin
            busy_reg    <= 1'b0;
            start_reg   <= 1'b0;
            done_reg    <= 1'b1;
            ready_reg   <= 1'b1;
        end
        pending_reg <= (pending_reg ^ toggled) | (finish ? sources_reg : 2'd0);
        if (write && aw_reg == CONTROL && data[0]) start_reg <= 1'b1;
        if (write && aw_reg == ENABLE && strb_reg[0]) enable_reg <= w_reg[0];
        if (write && aw_reg == SOURCES && strb_reg[0]) sources_reg <= w_reg[1:0];
        if (rst) begin
            start_reg   <= 1'b0;
            busy_reg    <= 1'b0;
            fresh_reg   <= 1'b0;
            done_reg    <= 1'b0;
            ready_reg   <= 1'b0;
            enable_reg  <= 1'b0;
            sources_reg <= 2'd0;
            pending_reg <= 2'd0;
            errors_reg  <= 4'd0;
        end
    end

    // ---- Read ----
    reg [31:0] found, read_reg;
    integer    m;
    always @* begin
        found = 32'd0;
        case (s_axil_araddr[11:2])
            CONTROL: found = {28'd0, ready_reg, !start_reg && !busy_reg, done_reg, start_reg};
            ENABLE:  found = {31'd0, enable_reg};
            SOURCES: found = {30'd0, sources_reg};
            PENDING: found = {30'd0, pending_reg};
            default: ;
        endcase
        for (m = 0; m < 2 * POINTERS; m = m + 1)
            if ({22'd0, s_axil_araddr[11:2]} == FIRST + 3 * (m / 2) + m % 2) found = halves_reg[32*m +: 32];
        if ({22'd0, s_axil_araddr[11:2]} == FRAMES) found = frames_reg;
        if ({22'd0, s_axil_araddr[11:2]} == OPTIONS) found = {31'd0, sequence_reg};
        if ({22'd0, s_axil_araddr[11:2]} == ERRORS) found = {28'd0, errors_reg};
    end

    assign s_axil_arready = !rvalid_reg && !rst;
    assign s_axil_rvalid  = rvalid_reg;
    assign s_axil_rresp   = 2'b00;
    assign s_axil_rdata   = read_reg;

    always @(posedge clk) begin
        if (!rvalid_reg) read_reg <= found;
        rvalid_reg <= rvalid_reg ? !s_axil_rready : s_axil_arvalid;
        if (rst) rvalid_reg <= 1'b0;
    end

    wire unused = &{1'b0, s_axil_awaddr[1:0], s_axil_araddr[1:0]};
endmodule
`default_nettype wire
