// axil_contract: assertions about the AXI4-Lite ports of the library.
//
// Purpose     An access is accepted when its ready and valid are high. The rise of its response answers it, and it ends
//             when the response is accepted. The k-th accepted address and the k-th accepted data form the k-th write.
//             No write is lost, repeated, or mixed with another. A response is stable until accepted. At most two
//             addresses and two data words are pending, so two places of a queue hold them.
// Parameters  ADDR_W   Bits of the byte address.
//             LATENCY  Cycles from the later of address and data to the response, if no other response waits.
// Ports       known                    A reset has occurred.
//             fresh, addr, data, strb  A write is answered from this cycle on, and its contents.
//             rfresh, raddr            A read is answered from this cycle on, and its address.
`default_nettype none
module axil_contract #(
    parameter integer ADDR_W  = 4,
    parameter integer LATENCY = 2
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [ADDR_W-1:0] awaddr,
    input  wire              awvalid,
    input  wire              awready,
    input  wire [31:0]       wdata,
    input  wire [3:0]        wstrb,
    input  wire              wvalid,
    input  wire              wready,
    input  wire [1:0]        bresp,
    input  wire              bvalid,
    input  wire              bready,
    input  wire [ADDR_W-1:0] araddr,
    input  wire              arvalid,
    input  wire              arready,
    input  wire [31:0]       rdata,
    input  wire [1:0]        rresp,
    input  wire              rvalid,
    input  wire              rready,
    output wire              known,
    output wire              fresh,
    output wire [ADDR_W-1:0] addr,
    output wire [31:0]       data,
    output wire [3:0]        strb,
    output wire              rfresh,
    output wire [ADDR_W-1:0] raddr
);
    // The state is undefined before the first reset. Place 0 of a queue is the oldest.
    reg              begun_reg = 1'b0, known_reg = 1'b0;
    reg [1:0]        addresses_reg = 0, words_reg = 0;
    reg [ADDR_W-1:0] addr0_reg = 0, addr1_reg = 0, raddr_reg = 0;
    reg [35:0]       word0_reg = 0, word1_reg = 0;
    reg              bheld_reg = 1'b0, rheld_reg = 1'b0, asked_reg = 1'b0;
    reg [1:0]        bresp_reg = 0, waited_reg = 0;
    reg [33:0]       read_reg = 0;

    assign known  = known_reg;
    assign fresh  = bvalid && !bheld_reg;
    assign rfresh = rvalid && !rheld_reg;
    assign addr   = addr0_reg;
    assign {strb, data} = word0_reg;
    assign raddr  = raddr_reg;

    wire take_a = awvalid && awready, take_w = wvalid && wready, take_r = arvalid && arready;
    wire [1:0] addresses = addresses_reg - {1'b0, fresh}, words = words_reg - {1'b0, fresh};

    always @(posedge clk) begin
        begun_reg <= 1'b1;
        addresses_reg <= addresses + {1'b0, take_a};
        words_reg     <= words + {1'b0, take_w};
        addr0_reg <= (take_a && addresses == 0) ? awaddr : fresh ? addr1_reg : addr0_reg;
        addr1_reg <= (take_a && addresses == 1) ? awaddr : addr1_reg;
        word0_reg <= (take_w && words == 0) ? {wstrb, wdata} : fresh ? word1_reg : word0_reg;
        word1_reg <= (take_w && words == 1) ? {wstrb, wdata} : word1_reg;
        waited_reg <= (addresses_reg == 0 || words_reg == 0 || bvalid) ? 2'd0 : waited_reg + 1'b1;
        bheld_reg <= bvalid && !bready;
        bresp_reg <= bresp;
        rheld_reg <= rvalid && !rready;
        read_reg  <= {rresp, rdata};
        asked_reg <= take_r;
        if (take_r) raddr_reg <= araddr;
        if (rst) begin
            known_reg     <= 1'b1;
            addresses_reg <= 0;
            words_reg     <= 0;
            waited_reg    <= 0;
            bheld_reg     <= 1'b0;
            rheld_reg     <= 1'b0;
            asked_reg     <= 1'b0;
        end
    end

    always @* begin
        if (!begun_reg) assume (rst);
        // A reset accepts nothing and forgets pending accesses.
        if (rst) in_reset: assert (!awready && !wready && !arready);
        if (known_reg) begin
            // Every response belongs to an accepted write, and every accepted write is answered.
            if (fresh) unasked: assert (addresses_reg != 0 && words_reg != 0);
            if (1'b1) overfull: assert (addresses_reg <= 2 && words_reg <= 2);
            if (1'b1) unanswered: assert (waited_reg < LATENCY);
            // An empty port accepts.
            if (!rst && addresses_reg == 0) refused_address: assert (awready);
            if (!rst && words_reg == 0) refused_data: assert (wready);
            if (bheld_reg) response_moved: assert (bvalid && bresp == bresp_reg);
            // A read is answered in the next cycle, and no response appears otherwise.
            if (1'b1) read_answered: assert (rfresh == asked_reg);
            if (!rst && !rvalid) refused_read: assert (arready);
            if (rvalid) one_read: assert (!arready);
            if (rheld_reg) read_moved: assert (rvalid && {rresp, rdata} == read_reg);
        end
    end
endmodule

// Effects of writes to hg_axil_weights, and results of reads.
module axil_weights_contract #(
    parameter integer UNITS = 1
) (
    input wire        clk,
    input wire        rst,
    input wire        known,
    input wire        fresh,
    input wire [3:0]  addr,
    input wire [31:0] data,
    input wire [3:0]  strb,
    input wire [1:0]  bresp,
    input wire        rfresh,
    input wire [3:0]  raddr,
    input wire [31:0] rdata,
    input wire [1:0]  rresp,
    input wire [49:0] load
);
    reg        chosen_reg = 1'b0;
    reg [15:0] unit_reg = 0, before_reg = 0;
    wire good  = fresh && strb == 4'hf;
    wire start = good && addr[3:2] == 0 && data < UNITS;
    wire piece = good && addr[3:2] == 1 && chosen_reg;
    wire [15:0] unit = start ? data[15:0] : unit_reg;

    always @(posedge clk) begin
        unit_reg   <= rst ? 16'd0 : unit;
        chosen_reg <= !rst && (chosen_reg || start);
        // A read returns the unit of the cycle in which it is accepted.
        before_reg <= unit;
    end

    wire [33:0] seen = (raddr[3:2] == 0) ? {2'd0, 16'd0, before_reg}
                     : (raddr[3:2] == 2) ? {2'd0, 16'h4847, 16'd0} + UNITS - 1 : {2'd2, 32'd0};
    always @* if (known) begin
        // The bus moves once with each valid write, and not otherwise.
        if (1'b1) moves: assert (load[49:48] == {piece, start});
        if (piece) brings: assert (load[31:0] == data);
        if (piece || start) chooses: assert (load[47:32] == unit);
        if (fresh) says: assert (bresp == ((piece || start) ? 2'd0 : 2'd2));
        if (rfresh) gives: assert ({rresp, rdata} == seen);
    end
endmodule

// Effects of writes to hg_axil_regs, and results of reads.
module axil_regs_contract #(
    parameter integer WORDS  = 2,
    parameter integer STATUS = 1,
    parameter integer ADDR_W = 5,
    parameter [32*WORDS-1:0] RESET = 0,
    parameter [32*WORDS-1:0] MASK  = 0
) (
    input wire                 clk,
    input wire                 rst,
    input wire                 known,
    input wire                 fresh,
    input wire [ADDR_W-1:0]    addr,
    input wire [31:0]          data,
    input wire [3:0]           strb,
    input wire [1:0]           bresp,
    input wire                 rfresh,
    input wire [ADDR_W-1:0]    raddr,
    input wire [31:0]          rdata,
    input wire [1:0]           rresp,
    input wire [32*WORDS-1:0]  values,
    input wire [32*STATUS-1:0] status
);
    reg  [32*WORDS-1:0] held_reg = 0;
    wire [32*WORDS-1:0] held;
    reg  [32*(WORDS+STATUS)-1:0] before_reg = 0;
    genvar w, k;
    generate
        for (w = 0; w < WORDS; w = w + 1) begin : word
            for (k = 0; k < 4; k = k + 1) begin : part
                localparam integer AT = 32 * w + 8 * k;
                assign held[AT +: 8] = (fresh && addr[ADDR_W-1:2] == w && strb[k]) ? data[8*k +: 8] & MASK[AT +: 8]
                                     : held_reg[AT +: 8];
            end
        end
    endgenerate

    always @(posedge clk) begin
        held_reg   <= rst ? RESET & MASK : held;
        before_reg <= {status, held};
    end

    wire [31:0] place = raddr[ADDR_W-1:2];
    wire [33:0] seen = (place < WORDS + STATUS) ? {2'd0, before_reg[32*place +: 32]} : {2'd2, 32'd0};
    always @* if (known) begin
        if (1'b1) holds: assert (values == held);
        if (fresh) says_word: assert (bresp == ((addr[ADDR_W-1:2] < WORDS) ? 2'd0 : 2'd2));
        if (rfresh) gives_word: assert ({rresp, rdata} == seen);
    end
endmodule
`default_nettype wire
