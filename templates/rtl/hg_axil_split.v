// hg_axil_split: Connects one AXI4-Lite port to several register ports.
//
// Purpose     Gives each of COUNT ports 4 KB of addresses: port i begins at address i * 4096.
// Parameters  COUNT   Ports, at least 1.
//             ADDR_W  Bits of the byte address, at least 13, enough for all ports.
// Latency     2 cycles in addition to the latency of the port, for writes and for reads.
// Contract    One write and one read at a time. Port i is at bit i of each m_axil_*valid and *ready. All
//             see the same addresses and data. An address beyond the last port is answered with SLVERR.
//             During reset awready, wready and arready are low. No output depends combinationally on an input
//             other than rst.
`default_nettype none
module hg_axil_split #(
    parameter integer COUNT  = 2,
    parameter integer ADDR_W = 14
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [ADDR_W-1:0]   s_axil_awaddr,
    input  wire                s_axil_awvalid,
    output wire                s_axil_awready,
    input  wire [31:0]         s_axil_wdata,
    input  wire [3:0]          s_axil_wstrb,
    input  wire                s_axil_wvalid,
    output wire                s_axil_wready,
    output wire [1:0]          s_axil_bresp,
    output wire                s_axil_bvalid,
    input  wire                s_axil_bready,
    input  wire [ADDR_W-1:0]   s_axil_araddr,
    input  wire                s_axil_arvalid,
    output wire                s_axil_arready,
    output wire [31:0]         s_axil_rdata,
    output wire [1:0]          s_axil_rresp,
    output wire                s_axil_rvalid,
    input  wire                s_axil_rready,
    output wire [11:0]         m_axil_awaddr,
    output wire [COUNT-1:0]    m_axil_awvalid,
    input  wire [COUNT-1:0]    m_axil_awready,
    output wire [31:0]         m_axil_wdata,
    output wire [3:0]          m_axil_wstrb,
    output wire [COUNT-1:0]    m_axil_wvalid,
    input  wire [COUNT-1:0]    m_axil_wready,
    input  wire [2*COUNT-1:0]  m_axil_bresp,
    input  wire [COUNT-1:0]    m_axil_bvalid,
    output wire [COUNT-1:0]    m_axil_bready,
    output wire [11:0]         m_axil_araddr,
    output wire [COUNT-1:0]    m_axil_arvalid,
    input  wire [COUNT-1:0]    m_axil_arready,
    input  wire [32*COUNT-1:0] m_axil_rdata,
    input  wire [2*COUNT-1:0]  m_axil_rresp,
    input  wire [COUNT-1:0]    m_axil_rvalid,
    output wire [COUNT-1:0]    m_axil_rready
);
    localparam [1:0] SLVERR = 2'b10;

    // An access is held (full) until its response is here, and forwarded (ask) until the port accepts it.
    reg [ADDR_W-1:0] aw_reg, ar_reg;
    reg [31:0]       w_reg;
    reg [3:0]        strb_reg;
    reg              aw_full_reg, w_full_reg, ar_full_reg, aw_ask_reg, w_ask_reg, ar_ask_reg;
    reg              bvalid_reg, rvalid_reg;
    reg [1:0]        bresp_reg;
    reg [33:0]       read_reg;

    // The port of each access: one bit is 1, or none beyond the last port.
    wire [COUNT-1:0] aw_port, ar_port;
    genvar g;
    generate
        for (g = 0; g < COUNT; g = g + 1) begin : port
            localparam [ADDR_W-13:0] PLACE = g;
            assign aw_port[g] = aw_reg[ADDR_W-1:12] == PLACE;
            assign ar_port[g] = ar_reg[ADDR_W-1:12] == PLACE;
        end
    endgenerate

    // Responses of the ports, or of this module.
    reg [1:0]  bresp;
    reg [33:0] read;
    integer i;
    always @* begin
        bresp = (|aw_port) ? 2'b00 : SLVERR;
        read  = (|ar_port) ? 34'd0 : {SLVERR, 32'd0};
        for (i = 0; i < COUNT; i = i + 1) begin
            bresp = bresp | (m_axil_bresp[2*i +: 2] & {2{aw_port[i]}});
            read  = read | ({m_axil_rresp[2*i +: 2], m_axil_rdata[32*i +: 32]} & {34{ar_port[i]}});
        end
    end
    wire writing  = aw_full_reg && w_full_reg;
    wire answered = writing && !bvalid_reg && ((|(m_axil_bvalid & aw_port)) || !(|aw_port));
    wire found    = ar_full_reg && !rvalid_reg && ((|(m_axil_rvalid & ar_port)) || !(|ar_port));

    assign s_axil_awready = !aw_full_reg && !rst;
    assign s_axil_wready  = !w_full_reg && !rst;
    assign s_axil_arready = !ar_full_reg && !rst;
    assign s_axil_bvalid  = bvalid_reg;
    assign s_axil_bresp   = bresp_reg;
    assign s_axil_rvalid  = rvalid_reg;
    assign {s_axil_rresp, s_axil_rdata} = read_reg;

    assign m_axil_awaddr  = aw_reg[11:0];
    assign m_axil_wdata   = w_reg;
    assign m_axil_wstrb   = strb_reg;
    assign m_axil_araddr  = ar_reg[11:0];
    assign m_axil_awvalid = aw_port & {COUNT{writing && aw_ask_reg}};
    assign m_axil_wvalid  = aw_port & {COUNT{writing && w_ask_reg}};
    assign m_axil_arvalid = ar_port & {COUNT{ar_ask_reg}};
    assign m_axil_bready  = aw_port & {COUNT{writing && !bvalid_reg}};
    assign m_axil_rready  = ar_port & {COUNT{ar_full_reg && !rvalid_reg}};

    always @(posedge clk) begin
        if (!aw_full_reg) aw_reg <= s_axil_awaddr;
        if (!w_full_reg) {strb_reg, w_reg} <= {s_axil_wstrb, s_axil_wdata};
        if (!ar_full_reg) ar_reg <= s_axil_araddr;
        aw_full_reg <= aw_full_reg ? !answered : s_axil_awvalid;
        w_full_reg  <= w_full_reg ? !answered : s_axil_wvalid;
        ar_full_reg <= ar_full_reg ? !found : s_axil_arvalid;
        aw_ask_reg  <= aw_full_reg ? aw_ask_reg && !(|(m_axil_awvalid & m_axil_awready)) : s_axil_awvalid;
        w_ask_reg   <= w_full_reg ? w_ask_reg && !(|(m_axil_wvalid & m_axil_wready)) : s_axil_wvalid;
        ar_ask_reg  <= ar_full_reg ? ar_ask_reg && !(|(m_axil_arvalid & m_axil_arready)) : s_axil_arvalid;
        if (answered) bresp_reg <= bresp;
        if (found) read_reg <= read;
        bvalid_reg <= bvalid_reg ? !s_axil_bready : answered;
        rvalid_reg <= rvalid_reg ? !s_axil_rready : found;
        if (rst) begin
            aw_full_reg <= 1'b0;
            w_full_reg  <= 1'b0;
            ar_full_reg <= 1'b0;
            aw_ask_reg  <= 1'b0;
            w_ask_reg   <= 1'b0;
            ar_ask_reg  <= 1'b0;
            bvalid_reg  <= 1'b0;
            rvalid_reg  <= 1'b0;
        end
    end
endmodule
`default_nettype wire
