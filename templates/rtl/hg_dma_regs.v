// hg_dma_regs: Registers of hg_dma, with an AXI4-Lite port.
//
// Purpose     Part of hg_dma: starts jobs, shows their state.
// Parameters  ADDR_W     Bits of an address in memory.
//             WORD_BITS  Address bits within a word, which have to be 0: log2 of the bytes of a word.
//             IN_BYTES   Bytes of an input frame in memory.
//             OUT_BYTES  Bytes of an output frame in memory.
// Registers   See hg_dma.
// Latency     Write: 2 cycles from the later of address and data to the response; `start` is 1 in the cycle
//             before. Read: 1 cycle.
// Contract    As hg_axil_regs: one write and one read at a time; SLVERR for an address beyond the registers
//             and for a write to a read-only one. During reset awready, wready and arready are low. `source`,
//             `target`, `count` and `sequence_start` are valid while start is 1. No output depends
//             combinationally on an input other than rst.
`default_nettype none
module hg_dma_regs #(
    parameter integer ADDR_W    = 32,
    parameter integer WORD_BITS = 2,
    parameter [31:0]  IN_BYTES  = 32'd64,
    parameter [31:0]  OUT_BYTES = 32'd20
) (
    input  wire              clk,
    input  wire              rst,
    output wire              start,
    output wire [ADDR_W-1:0] source,
    output wire [ADDR_W-1:0] target,
    output wire [31:0]       count,
    output wire              sequence_start,
    input  wire              active,
    input  wire              read_failed,
    input  wire              write_failed,
    input  wire              misplaced,
    input  wire [31:0]       sent,
    input  wire [31:0]       received,
    output wire              irq,
    input  wire [5:0]        s_axil_awaddr,
    input  wire              s_axil_awvalid,
    output wire              s_axil_awready,
    input  wire [31:0]       s_axil_wdata,
    input  wire [3:0]        s_axil_wstrb,
    input  wire              s_axil_wvalid,
    output wire              s_axil_wready,
    output wire [1:0]        s_axil_bresp,
    output wire              s_axil_bvalid,
    input  wire              s_axil_bready,
    input  wire [5:0]        s_axil_araddr,
    input  wire              s_axil_arvalid,
    output wire              s_axil_arready,
    output wire [31:0]       s_axil_rdata,
    output wire [1:0]        s_axil_rresp,
    output wire              s_axil_rvalid,
    input  wire              s_axil_rready
);
    localparam [1:0] OKAY = 2'b00, SLVERR = 2'b10;
    localparam [3:0] CONTROL = 4'd0, STATUS = 4'd1, SRC = 4'd2, SRC_HIGH = 4'd3, DST = 4'd4, DST_HIGH = 4'd5;
    localparam [3:0] FRAMES = 4'd6, SENT = 4'd7, RECEIVED = 4'd8, CYCLES = 4'd9, IN_SIZE = 4'd10;
    localparam [3:0] OUT_SIZE = 4'd11;

    // ---- Write: address and data wait for each other, then for the previous response to be accepted ----
    reg [3:0]  aw_reg;
    reg [31:0] w_reg;
    reg [3:0]  strb_reg;
    reg        aw_full_reg, w_full_reg, bvalid_reg;
    reg [1:0]  bresp_reg;
    wire       write = aw_full_reg && w_full_reg && !bvalid_reg;

    assign s_axil_awready = !aw_full_reg && !rst;
    assign s_axil_wready  = !w_full_reg && !rst;
    assign s_axil_bvalid  = bvalid_reg;
    assign s_axil_bresp   = bresp_reg;

    always @(posedge clk) begin
        if (!aw_full_reg) aw_reg <= s_axil_awaddr[5:2];
        if (!w_full_reg) {strb_reg, w_reg} <= {s_axil_wstrb, s_axil_wdata};
        if (write) bresp_reg <= (aw_reg <= FRAMES) ? OKAY : SLVERR;
        aw_full_reg <= aw_full_reg ? !write : s_axil_awvalid;
        w_full_reg  <= w_full_reg ? !write : s_axil_wvalid;
        bvalid_reg  <= bvalid_reg ? !s_axil_bready : write;
        if (rst) begin
            aw_full_reg <= 1'b0;
            w_full_reg  <= 1'b0;
            bvalid_reg  <= 1'b0;
        end
    end

    // ---- Addresses and count: 64 bits each, of which ADDR_W exist ----
    localparam [63:0] ADDR_MASK = {64{1'b1}} >> (64 - ADDR_W);
    reg  [63:0] src_reg, dst_reg;
    reg  [31:0] frames_reg;
    wire [31:0] bits = {{8{strb_reg[3]}}, {8{strb_reg[2]}}, {8{strb_reg[1]}}, {8{strb_reg[0]}}};
    wire [31:0] data = w_reg & bits;

    always @(posedge clk) begin
        if (write)
            case (aw_reg)
                SRC:      src_reg[31:0]  <= (data | (src_reg[31:0] & ~bits)) & ADDR_MASK[31:0];
                SRC_HIGH: src_reg[63:32] <= (data | (src_reg[63:32] & ~bits)) & ADDR_MASK[63:32];
                DST:      dst_reg[31:0]  <= (data | (dst_reg[31:0] & ~bits)) & ADDR_MASK[31:0];
                DST_HIGH: dst_reg[63:32] <= (data | (dst_reg[63:32] & ~bits)) & ADDR_MASK[63:32];
                FRAMES:   frames_reg     <= data | (frames_reg & ~bits);
                default: ;
            endcase
        if (rst) begin
            src_reg    <= 64'd0;
            dst_reg    <= 64'd0;
            frames_reg <= 32'd0;
        end
    end

    // ---- Jobs ----
    reg        busy_reg, fresh_reg, done_reg, enable_reg, sequence_reg;
    reg [3:0]  errors_reg;                              // refused, misplaced, write_failed, read_failed
    reg [31:0] cycles_reg;
    wire [WORD_BITS-1:0] low_bits = src_reg[WORD_BITS-1:0] | dst_reg[WORD_BITS-1:0];
    wire       ask     = write && aw_reg == CONTROL && data[0];
    wire       legal   = !busy_reg && frames_reg != 32'd0 && low_bits == {WORD_BITS{1'b0}};
    wire       clear   = write && aw_reg == STATUS && data[1];
    wire       finish  = busy_reg && !fresh_reg && !active;

    assign start  = ask && legal;
    assign source = src_reg[ADDR_W-1:0];
    assign target = dst_reg[ADDR_W-1:0];
    assign count  = frames_reg;
    assign sequence_start = sequence_reg || data[2];
    assign irq    = done_reg && enable_reg;

    always @(posedge clk) begin
        fresh_reg <= start;                             // `active` rises one cycle after start
        if (write && aw_reg == CONTROL && strb_reg[0]) enable_reg <= w_reg[1];
        if (write && aw_reg == CONTROL && data[2]) sequence_reg <= 1'b1;
        if (clear) done_reg <= 1'b0;
        if (finish) begin
            busy_reg <= 1'b0;
            done_reg <= 1'b1;
        end
        if (busy_reg) cycles_reg <= cycles_reg + 1'b1;
        errors_reg <= errors_reg | {ask && !legal, misplaced, write_failed, read_failed};
        if (start) begin
            busy_reg     <= 1'b1;
            done_reg     <= 1'b0;
            sequence_reg <= 1'b0;
            cycles_reg   <= 32'd0;
            errors_reg   <= 4'd0;
        end
        if (rst) begin
            busy_reg     <= 1'b0;
            fresh_reg    <= 1'b0;
            done_reg     <= 1'b0;
            enable_reg   <= 1'b0;
            sequence_reg <= 1'b0;
            cycles_reg   <= 32'd0;
            errors_reg   <= 4'd0;
        end
    end

    // ---- Read ----
    reg [33:0] found, read_reg;
    reg        rvalid_reg;
    always @* begin
        case (s_axil_araddr[5:2])
            CONTROL:  found = {OKAY, 29'd0, sequence_reg, enable_reg, 1'b0};
            STATUS:   found = {OKAY, 26'd0, errors_reg, done_reg, busy_reg};
            SRC:      found = {OKAY, src_reg[31:0]};
            SRC_HIGH: found = {OKAY, src_reg[63:32]};
            DST:      found = {OKAY, dst_reg[31:0]};
            DST_HIGH: found = {OKAY, dst_reg[63:32]};
            FRAMES:   found = {OKAY, frames_reg};
            SENT:     found = {OKAY, sent};
            RECEIVED: found = {OKAY, received};
            CYCLES:   found = {OKAY, cycles_reg};
            IN_SIZE:  found = {OKAY, IN_BYTES};
            OUT_SIZE: found = {OKAY, OUT_BYTES};
            default:  found = {SLVERR, 32'd0};
        endcase
    end

    assign s_axil_arready = !rvalid_reg && !rst;
    assign s_axil_rvalid  = rvalid_reg;
    assign {s_axil_rresp, s_axil_rdata} = read_reg;

    always @(posedge clk) begin
        if (!rvalid_reg) read_reg <= found;
        rvalid_reg <= rvalid_reg ? !s_axil_rready : s_axil_arvalid;
        if (rst) rvalid_reg <= 1'b0;
    end

    wire unused = &{1'b0, s_axil_awaddr[1:0], s_axil_araddr[1:0], src_reg, dst_reg, data};
endmodule
`default_nettype wire
