// Contracts of the parts of hg_dma, as assertions about their ports. The state is undefined before the first reset.
`default_nettype none

// dma_bursts_contract: the bursts of a job cover its words in order, and none crosses 4 KB.
//
// Contract    Jobs have less than 2^COUNT_W frames, and start when the previous one has no bursts left.
module dma_bursts_contract #(
    parameter integer ADDR_W  = 13,
    parameter integer DATA_W  = 32,
    parameter integer WORDS   = 3,
    parameter integer BURST   = 2,
    parameter integer COUNT_W = 2
) (
    input wire                   clk,
    input wire                   rst,
    input wire                   start,
    input wire [ADDR_W-1:0]      base,
    input wire [31:0]            count,
    input wire                   left,
    input wire [ADDR_W-1:0]      m_addr,
    input wire [$clog2(BURST):0] m_words,
    input wire                   m_valid,
    input wire                   m_ready
);
    localparam integer SHIFT = $clog2(DATA_W / 8);
    localparam integer TW    = COUNT_W + $clog2(WORDS + 1);
    reg              begun_reg = 1'b0, known_reg = 1'b0, held_reg = 1'b0;
    reg [TW-1:0]     total_reg = 0;                     // words that no accepted burst has
    reg [ADDR_W-1:0] next_reg = 0, addr_reg = 0;
    reg [$clog2(BURST):0] words_reg = 0;
    wire             take = m_valid && m_ready;
    wire [12:0]      last = {1'b0, m_addr[11:0]} + ({12'd0, m_words} << SHIFT) - 1'b1;
    wire [31:0]      page = (13'h1000 - {1'b0, m_addr[11:0]}) >> SHIFT;

    always @(posedge clk) begin
        begun_reg <= 1'b1;
        held_reg  <= m_valid && !m_ready && !rst;
        addr_reg  <= m_addr;
        words_reg <= m_words;
        total_reg <= start ? count[COUNT_W-1:0] * WORDS : take ? total_reg - m_words : total_reg;
        next_reg  <= start ? {base[ADDR_W-1:SHIFT], {SHIFT{1'b0}}} : take ? m_addr + (m_words << SHIFT) : next_reg;
        if (rst) begin
            known_reg <= 1'b1;
            total_reg <= 0;
        end
    end

    always @* begin
        if (!begun_reg) assume (rst);
        if (start) assume (!left && !rst && count < (1 << COUNT_W));
        if (known_reg) begin
            if (1'b1) some_left: assert (left == (total_reg != 0));
            if (m_valid) in_page: assert (!last[12]);
            if (m_valid) in_order: assert (m_addr == next_reg);
            if (m_valid) not_too_many: assert (m_words <= total_reg);
            if (m_valid) longest: assert (m_words != 0 && (m_words == BURST || m_words == page || m_words == total_reg));
            if (held_reg) burst_moved: assert (m_valid && m_addr == addr_reg && m_words == words_reg);
        end
    end
endmodule

// dma_read_contract: requests of hg_dma_read. Memory delivers only words that were requested.
module dma_read_contract #(
    parameter integer WORDS   = 2,
    parameter integer BURST   = 2,
    parameter integer COUNT_W = 2
) (
    input wire        clk,
    input wire        rst,
    input wire        start,
    input wire [31:0] count,
    input wire [31:0] sent,
    input wire [7:0]  arlen,
    input wire [12:0] araddr,
    input wire        arvalid,
    input wire        arready,
    input wire        rvalid,
    input wire        tvalid,
    input wire        tready,
    input wire        tlast
);
    localparam integer TW = COUNT_W + $clog2(WORDS + 1);
    localparam integer DW = $clog2(2 * BURST + 1) + 1;
    reg          begun_reg = 1'b0, known_reg = 1'b0, held_reg = 1'b0;
    reg [TW-1:0] total_reg = 0;                         // words that were not requested
    reg [DW-1:0] open_reg = 0, stored_reg = 0;          // requested words: not delivered; not sent to the core
    reg [20:0]   request_reg = 0;
    reg [31:0]   sent_reg = 0;
    wire         ask = arvalid && arready, pop = tvalid && tready;
    wire [DW-1:0] words = ask ? arlen + 1'b1 : 0;

    always @(posedge clk) begin
        begun_reg   <= 1'b1;
        held_reg    <= arvalid && !arready && !rst;
        request_reg <= {araddr, arlen};
        total_reg   <= start ? count[COUNT_W-1:0] * WORDS : total_reg - words;
        open_reg    <= open_reg + words - rvalid;
        stored_reg  <= stored_reg + words - pop;
        sent_reg    <= start ? 0 : sent_reg + (pop && tlast);
        if (rst) begin
            known_reg  <= 1'b1;
            total_reg  <= 0;
            open_reg   <= 0;
            stored_reg <= 0;
            sent_reg   <= 0;
        end
    end

    always @* begin
        if (!begun_reg) assume (rst);
        if (start) assume (total_reg == 0 && !rst && count < (1 << COUNT_W));
        if (rvalid) assume (open_reg != 0);
        if (known_reg) begin
            if (arvalid) requests_too_much: assert (arlen < total_reg);
            if (ask) has_room: assert (stored_reg + arlen < 2 * BURST);
            if (held_reg) request_moved: assert (arvalid && {araddr, arlen} == request_reg);
            if (1'b1) counts_sent: assert (sent == sent_reg);
        end
    end
endmodule

// dma_write_contract: bursts of hg_dma_write. Memory answers only bursts that were requested and sent.
module dma_write_contract #(
    parameter integer WORDS   = 2,
    parameter integer COUNT_W = 2
) (
    input wire        clk,
    input wire        rst,
    input wire        start,
    input wire [31:0] count,
    input wire        active,
    input wire [7:0]  awlen,
    input wire [12:0] awaddr,
    input wire        awvalid,
    input wire        awready,
    input wire        wvalid,
    input wire        wready,
    input wire        wlast,
    input wire        bvalid
);
    localparam integer TW = COUNT_W + $clog2(WORDS + 1);
    reg          begun_reg = 1'b0, known_reg = 1'b0, held_reg = 1'b0;
    reg [TW-1:0] total_reg = 0;                         // words that were not requested
    reg [TW-1:0] requests_reg = 0, bursts_reg = 0;      // without response: requested bursts, sent bursts
    reg [8:0]    beats_reg = 0;                         // words of the burst that were not sent
    reg [20:0]   request_reg = 0;
    wire         fresh = awvalid && !held_reg;          // offered from this cycle on, with its words
    wire [8:0]   beats = fresh ? awlen + 1'b1 : beats_reg;
    wire         ask = awvalid && awready, send = wvalid && wready;

    always @(posedge clk) begin
        begun_reg    <= 1'b1;
        held_reg     <= awvalid && !awready && !rst;
        request_reg  <= {awaddr, awlen};
        total_reg    <= start ? count[COUNT_W-1:0] * WORDS : ask ? total_reg - awlen - 1'b1 : total_reg;
        beats_reg    <= send ? beats - 1'b1 : beats;
        requests_reg <= requests_reg + ask - bvalid;
        bursts_reg   <= bursts_reg + (send && wlast) - bvalid;
        if (rst) begin
            known_reg    <= 1'b1;
            total_reg    <= 0;
            beats_reg    <= 0;
            requests_reg <= 0;
            bursts_reg   <= 0;
        end
    end

    always @* begin
        if (!begun_reg) assume (rst);
        if (start) assume (!active && !rst && count < (1 << COUNT_W));
        if (bvalid) assume (requests_reg != 0 && bursts_reg != 0);
        if (known_reg) begin
            if (awvalid) writes_too_much: assert (awlen < total_reg);
            if (held_reg) write_moved: assert (awvalid && {awaddr, awlen} == request_reg);
            if (fresh) one_burst: assert (beats_reg == 0);
            if (1'b1) sends: assert (wvalid == (beats != 0));
            if (wvalid) ends: assert (wlast == (beats == 1));
            if (1'b1) is_active: assert (active == (total_reg != 0 || requests_reg != 0 || bursts_reg != 0));
        end
    end
endmodule

// dma_regs_contract: effects of writes to hg_dma_regs.
module dma_regs_contract #(
    parameter integer ADDR_W    = 32,
    parameter integer WORD_BITS = 2
) (
    input wire              clk,
    input wire              rst,
    input wire              known,
    input wire              fresh,
    input wire [5:0]        addr,
    input wire [31:0]       data,
    input wire [3:0]        strb,
    input wire [1:0]        bresp,
    input wire              rfresh,
    input wire [5:0]        raddr,
    input wire [31:0]       rdata,
    input wire [1:0]        rresp,
    input wire              start,
    input wire [ADDR_W-1:0] source,
    input wire [ADDR_W-1:0] target,
    input wire [31:0]       count,
    input wire              sequence_start,
    input wire              active,
    input wire              read_failed,
    input wire              write_failed,
    input wire              misplaced,
    input wire [31:0]       sent,
    input wire [31:0]       received,
    input wire              irq
);
    reg start_reg = 1'b0, busy_reg = 1'b0, first_reg = 1'b0, legal_reg = 1'b0, was_busy_reg = 1'b0;
    reg [31:0] sent_reg = 0;
    reg sequence_reg = 1'b0, asked_reg = 1'b0;
    wire asks = fresh && addr[5:2] == 4'd0 && strb[0] && data[2];
    wire finish = busy_reg && !first_reg && !active;
    wire [WORD_BITS-1:0] low = source[WORD_BITS-1:0] | target[WORD_BITS-1:0];
    always @(posedge clk) begin
        start_reg <= start && !rst;
        first_reg <= start && !rst;
        busy_reg  <= !rst && (start || (busy_reg && !finish));
        legal_reg <= !rst && !busy_reg && count != 0 && low == 0;
        was_busy_reg <= busy_reg;
        sent_reg  <= sent;
        sequence_reg <= sequence_start;
        asked_reg <= !rst && !start_reg && (asked_reg || asks);
    end
    // The response appears in the cycle after the write.
    wire order = fresh && addr[5:2] == 4'd0 && strb[0] && data[0];
    always @* if (known) begin
        if (1'b1) starts: assert (start_reg == (order && legal_reg));
        if (start_reg) sequence_starts: assert (sequence_reg == (asked_reg || asks));
        if (fresh) says_register: assert (bresp == ((addr[5:2] <= 4'd6) ? 2'd0 : 2'd2));
        if (rfresh) says_read: assert (rresp == ((raddr[5:2] <= 4'd11) ? 2'd0 : 2'd2));
        if (rfresh && raddr[5:2] == 4'd1) busy: assert (rdata[0] == was_busy_reg);
        if (rfresh && raddr[5:2] == 4'd7) gives_sent: assert (rdata == sent_reg);
    end
endmodule

// kernel_regs_contract: effects of accesses to hg_kernel_regs.
module kernel_regs_contract #(
    parameter integer POINTERS  = 2,
    parameter integer WORD_BITS = 2
) (
    input wire                   clk,
    input wire                   rst,
    input wire                   known,
    input wire                   fresh,
    input wire [11:0]            addr,
    input wire [31:0]            data,
    input wire [3:0]             strb,
    input wire [1:0]             bresp,
    input wire                   rfresh,
    input wire [11:0]            raddr,
    input wire [31:0]            rdata,
    input wire [1:0]             rresp,
    input wire                   start,
    input wire [64*POINTERS-1:0] pointers,
    input wire [31:0]            count,
    input wire                   sequence_start,
    input wire                   active,
    input wire                   read_failed,
    input wire                   write_failed,
    input wire                   misplaced,
    input wire                   irq
);
    localparam integer FRAMES = 4 + 3 * POINTERS;
    wire [31:0] bits = {{8{strb[3]}}, {8{strb[2]}}, {8{strb[1]}}, {8{strb[0]}}};
    // The response appears in the cycle after the write: `fresh` shows a write whose effect is here.
    wire writes_control = fresh && addr[11:2] == 0, writes_enable = fresh && addr[11:2] == 1 && strb[0];
    wire writes_sources = fresh && addr[11:2] == 2 && strb[0], writes_pending = fresh && addr[11:2] == 3;
    wire reads_control  = rfresh && raddr[11:2] == 0;
    reg start_reg = 0, busy_reg = 0, first_reg = 0, finish_reg = 0, done_reg = 0, enable_reg = 0, idle_reg = 0;
    reg [1:0] sources_reg = 0, pending_reg = 0;
    reg [3:0] errors_reg = 0, was_errors_reg = 0;
    reg [64*POINTERS-1:0] pointers_reg = 0;
    reg [31:0] count_reg = 0;
    reg was_reset_reg = 1, was_start_reg = 0, sequence_reg = 0;
    integer k;
    reg [WORD_BITS-1:0] low;
    always @* begin
        low = 0;
        for (k = 0; k < POINTERS; k = k + 1) low = low | pointers[64*k +: WORD_BITS];
    end
    wire starts = start_reg || (writes_control && strb[0] && data[0]);
    wire begins = starts && !busy_reg;
    wire finish = busy_reg && !first_reg && !active;
    wire done   = finish_reg || (done_reg && !reads_control);
    wire enable = writes_enable ? data[0] : enable_reg;
    wire [1:0] sources = writes_sources ? data[1:0] : sources_reg;
    wire [1:0] pending = (pending_reg ^ (writes_pending ? data[1:0] & bits[1:0] : 2'd0)) |
                         (finish_reg ? sources_reg : 2'd0);
    always @(posedge clk) begin
        was_reset_reg <= rst;
        start_reg     <= starts && !finish && !rst;
        busy_reg      <= (begins || (busy_reg && !finish)) && !rst;
        first_reg     <= begins && !rst;
        finish_reg    <= finish && !rst;
        done_reg      <= done && !rst;
        enable_reg    <= enable && !rst;
        sources_reg   <= rst ? 2'd0 : sources;
        pending_reg   <= rst ? 2'd0 : pending;
        was_start_reg <= starts && !rst;
        idle_reg      <= (!starts && !busy_reg) || rst;
        errors_reg    <= rst ? 4'd0 : begins ? {low != 0, 3'b000} : errors_reg | {1'b0, misplaced, write_failed, read_failed};
        pointers_reg  <= pointers;
        count_reg     <= count;
        sequence_reg  <= sequence_start;
    end
    always @(posedge clk) was_errors_reg <= errors_reg;
    wire [9:0] word = addr[11:2], rword = raddr[11:2];
    reg kept, given;
    integer g;
    always @* begin
        kept = 1'b1;
        given = 1'b1;
        for (g = 0; g < 2 * POINTERS; g = g + 1) begin
            kept = kept && pointers[32*g +: 32] == ((fresh && word == 4 + 3 * (g / 2) + g % 2) ?
                   (data & bits) | (pointers_reg[32*g +: 32] & ~bits) : pointers_reg[32*g +: 32]);
            given = given && (raddr[11:2] != 4 + 3 * (g / 2) + g % 2 || rdata == pointers_reg[32*g +: 32]);
        end
    end
    always @* if (known) begin
        if (!was_reset_reg) keeps_address: assert (kept);
        if (rfresh && !was_reset_reg) gives_address: assert (given);
        if (1'b1) starts_jobs: assert (start == (begins && low == 0 && count != 0));
        if (1'b1) interrupts: assert (irq == (enable && pending != 0));
        if (fresh) okay_write: assert (bresp == 2'd0);
        if (rfresh) okay_read: assert (rresp == 2'd0);
        if (reads_control && !was_reset_reg) says_control: assert (rdata == {28'd0, done_reg, idle_reg, done_reg, was_start_reg});
        if (rfresh && rword == 3 && !was_reset_reg) gives_pending: assert (rdata == pending_reg);
        if (rfresh && rword == FRAMES + 4 && !was_reset_reg) gives_errors: assert (rdata == was_errors_reg);
        if (!was_reset_reg) keeps_frames: assert (count == ((fresh && word == FRAMES) ? (data & bits) | (count_reg & ~bits) : count_reg));
        if (!was_reset_reg) sequence_option: assert (sequence_start == ((fresh && word == FRAMES + 2 && strb[0]) ? data[0] : sequence_reg));
    end
endmodule
`default_nettype wire
