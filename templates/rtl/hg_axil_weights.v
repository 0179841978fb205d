// hg_axil_weights: AXI4-Lite port that reloads the weights of a core's units.
//
// Purpose     Turns writes into 32-bit pieces on the load bus. The hg_load of every unit listens to this
//             bus.
// Parameters  UNITS  Units on the bus, numbered from 0, at most 65536.
// Registers   0x0 UNIT  write: selects a unit; its next piece is the first piece of its word 0.
//                       read: the selected unit.
//             0x4 DATA  write only: the next 32 bits for that unit, low bits of a word first.
//             0x8 INFO  read only: 0x4847 in the high half, UNITS - 1 in the low half.
// Latency     Write: 2 cycles from the later of address and data to the bus and the response. Read: 1
//             cycle.
// Contract    One write and one read at a time. Address and data of a write arrive in any order. These
//             writes get SLVERR and have no effect: fewer than 4 bytes, a unit beyond the last one, DATA
//             before a unit is selected. All accesses other than those listed above also get SLVERR, and
//             such a read returns 0. The bus is load = {valid, start, unit[15:0], data[31:0]}. The two low
//             address bits are ignored. During reset awready, wready and arready are low. A request offered
//             during reset waits and is the first access after it. No output depends combinationally on an
//             input other than rst. There is no prot port: it has no meaning here. Words go straight to
//             memories that a frame may be using. Load only while no frame is in the core.
`default_nettype none
module hg_axil_weights #(
    parameter integer UNITS = 1
) (
    input  wire        clk,
    input  wire        rst,
    input  wire [3:0]  s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire [3:0]  s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [1:0]  s_axil_bresp,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [3:0]  s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready,
    output wire [49:0] load
);
    localparam [1:0]  OKAY = 2'b00, SLVERR = 2'b10;
    localparam [1:0]  UNIT = 2'd0, DATA = 2'd1, INFO = 2'd2;
    localparam integer HIGHEST = UNITS - 1;

    // Write: address and data wait for each other, then for the previous response to be accepted.
    reg [1:0]  aw_reg;
    reg [31:0] w_reg;
    reg [3:0]  strb_reg;
    reg        aw_full_reg, w_full_reg, bvalid_reg;
    reg [1:0]  bresp_reg;
    wire       write = aw_full_reg && w_full_reg && !bvalid_reg;

    assign s_axil_awready = !aw_full_reg && !rst;
    assign s_axil_wready  = !w_full_reg && !rst;
    assign s_axil_bvalid  = bvalid_reg;
    assign s_axil_bresp   = bresp_reg;

    // The load bus, driven by registers.
    reg [15:0] unit_reg;
    reg [31:0] data_reg;
    reg        chosen_reg, start_reg, valid_reg;
    wire       whole = strb_reg == 4'b1111;
    wire       start = whole && aw_reg == UNIT && w_reg <= HIGHEST;
    wire       piece = whole && aw_reg == DATA && chosen_reg;
    assign load = {valid_reg, start_reg, unit_reg, data_reg};
    // Initial values: before the first reset, nothing reaches the bus unless it was written.
    initial {chosen_reg, start_reg, valid_reg, aw_full_reg, w_full_reg, bvalid_reg} = 6'd0;

    always @(posedge clk) begin
        if (!aw_full_reg) aw_reg <= s_axil_awaddr[3:2];
        if (!w_full_reg) {strb_reg, w_reg} <= {s_axil_wstrb, s_axil_wdata};
        if (write) bresp_reg <= (start || piece) ? OKAY : SLVERR;
        if (write && start) unit_reg <= w_reg[15:0];
        if (write) data_reg <= w_reg;
        start_reg   <= write && start;
        valid_reg   <= write && piece;
        chosen_reg  <= chosen_reg || (write && start);
        aw_full_reg <= aw_full_reg ? !write : s_axil_awvalid;
        w_full_reg  <= w_full_reg ? !write : s_axil_wvalid;
        bvalid_reg  <= bvalid_reg ? !s_axil_bready : write;
        if (rst) begin
            unit_reg    <= 16'd0;
            chosen_reg  <= 1'b0;
            start_reg   <= 1'b0;
            valid_reg   <= 1'b0;
            aw_full_reg <= 1'b0;
            w_full_reg  <= 1'b0;
            bvalid_reg  <= 1'b0;
        end
    end

    // Read.
    wire [1:0]  ar = s_axil_araddr[3:2];
    wire [33:0] found = (ar == UNIT) ? {OKAY, 16'd0, unit_reg}
                      : (ar == INFO) ? {OKAY, 16'h4847, HIGHEST[15:0]} : {SLVERR, 32'd0};
    reg [33:0] read_reg;
    reg        rvalid_reg;

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
