// hg_axil_regs: 32-bit registers with an AXI4-Lite port.
//
// Purpose     Words 0 .. WORDS - 1 are writable and readable. The STATUS words after them are read-only.
// Parameters  WORDS   Writable words.
//             STATUS  Read-only words.
//             ADDR_W  Bits of the byte address, at least 3, enough for all words.
//             RESET   Values after reset, word 0 in the low bits.
//             MASK    Implemented bits; the others read as zero and ignore writes.
//             HELD    Bits that a write can only set; `cleared` clears them, unless a write sets them then.
// Latency     Write: 2 cycles from the later of address and data to the new value and the response. Read: 1
//             cycle.
// Contract    One write and one read at a time. Address and data of a write arrive in any order; wstrb
//             selects bytes. The response is OKAY, or SLVERR for an address beyond the last word or a write
//             to a read-only word. Such a write changes nothing; such a read returns 0. The two low address
//             bits are ignored. A new value is visible in the cycle in which bvalid rises. During reset
//             awready, wready and arready are low. A request offered during reset waits and is the first
//             access after it. No output depends combinationally on an input other than rst. There is no
//             prot port: it has no meaning here.
`default_nettype none
module hg_axil_regs #(
    parameter integer          WORDS  = 2,
    parameter integer          STATUS = 1,
    parameter integer          ADDR_W = 5,
    parameter [32*WORDS-1:0]   RESET  = {32*WORDS{1'b0}},
    parameter [32*WORDS-1:0]   MASK   = {32*WORDS{1'b1}},
    parameter [32*WORDS-1:0]   HELD   = {32*WORDS{1'b0}}
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [ADDR_W-1:0]    s_axil_awaddr,
    input  wire                 s_axil_awvalid,
    output wire                 s_axil_awready,
    input  wire [31:0]          s_axil_wdata,
    input  wire [3:0]           s_axil_wstrb,
    input  wire                 s_axil_wvalid,
    output wire                 s_axil_wready,
    output wire [1:0]           s_axil_bresp,
    output wire                 s_axil_bvalid,
    input  wire                 s_axil_bready,
    input  wire [ADDR_W-1:0]    s_axil_araddr,
    input  wire                 s_axil_arvalid,
    output wire                 s_axil_arready,
    output wire [31:0]          s_axil_rdata,
    output wire [1:0]           s_axil_rresp,
    output wire                 s_axil_rvalid,
    input  wire                 s_axil_rready,
    input  wire [32*WORDS-1:0]  cleared,
    output wire [32*WORDS-1:0]  values,
    input  wire [32*STATUS-1:0] status
);
    localparam integer INDEX_W = ADDR_W - 2;
    localparam integer ALL     = WORDS + STATUS;
    localparam [1:0] OKAY = 2'b00, SLVERR = 2'b10;

    reg [32*WORDS-1:0] values_reg;
    assign values = values_reg;

    // Write: address and data wait for each other, then for the previous response to be accepted.
    reg [INDEX_W-1:0] aw_reg;
    reg [31:0]        w_reg;
    reg [3:0]         strb_reg;
    reg               aw_full_reg, w_full_reg, bvalid_reg;
    reg [1:0]         bresp_reg;
    wire              write = aw_full_reg && w_full_reg && !bvalid_reg;

    assign s_axil_awready = !aw_full_reg && !rst;
    assign s_axil_wready  = !w_full_reg && !rst;
    assign s_axil_bvalid  = bvalid_reg;
    assign s_axil_bresp   = bresp_reg;

    reg               hit;
    reg [32*WORDS-1:0] values_next;
    integer i, k;
    always @* begin
        hit = 1'b0;
        values_next = values_reg & ~(HELD & cleared);
        for (i = 0; i < WORDS; i = i + 1) begin
            if (aw_reg == i[INDEX_W-1:0]) hit = 1'b1;
            for (k = 0; k < 4; k = k + 1)
                if (aw_reg == i[INDEX_W-1:0] && strb_reg[k])
                    values_next[32*i + 8*k +: 8] = w_reg[8*k +: 8] & MASK[32*i + 8*k +: 8];
        end
    end

    always @(posedge clk) begin
        if (!aw_full_reg) aw_reg <= s_axil_awaddr[ADDR_W-1:2];
        if (!w_full_reg) {strb_reg, w_reg} <= {s_axil_wstrb, s_axil_wdata};
        values_reg <= values_reg & ~(HELD & cleared);
        if (write) begin
            values_reg <= values_next | (values_reg & HELD & ~cleared);
            bresp_reg  <= hit ? OKAY : SLVERR;
        end
        aw_full_reg <= aw_full_reg ? !write : s_axil_awvalid;
        w_full_reg  <= w_full_reg ? !write : s_axil_wvalid;
        bvalid_reg  <= bvalid_reg ? !s_axil_bready : write;
        if (rst) begin
            values_reg  <= RESET & MASK;
            aw_full_reg <= 1'b0;
            w_full_reg  <= 1'b0;
            bvalid_reg  <= 1'b0;
        end
    end

    // Read.
    wire [32*ALL-1:0]  all = {status, values_reg};
    wire [INDEX_W-1:0] ar  = s_axil_araddr[ADDR_W-1:2];
    reg [33:0] found;
    reg [33:0] read_reg;
    reg        rvalid_reg;
    integer j;
    always @* begin
        found = {SLVERR, 32'd0};
        for (j = 0; j < ALL; j = j + 1)
            if (ar == j[INDEX_W-1:0]) found = {OKAY, all[32*j +: 32]};
    end

    assign s_axil_arready = !rvalid_reg && !rst;
    assign s_axil_rvalid  = rvalid_reg;
    assign {s_axil_rresp, s_axil_rdata} = read_reg;

    always @(posedge clk) begin
        if (!rvalid_reg) read_reg <= found;
        rvalid_reg <= rvalid_reg ? !s_axil_rready : s_axil_arvalid;
        if (rst) rvalid_reg <= 1'b0;
    end

    wire unused = &{1'b0, s_axil_awaddr[1:0], s_axil_araddr[1:0]};
endmodule
`default_nettype wire
