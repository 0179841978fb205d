// hg_replay: Vector buffer that emits every vector of LENGTH beats REPEAT times.
//
// Purpose     Feeds a folded matrix-vector unit: stores the next vector while the current one is repeated.
// Parameters  WIDTH   Bits of a beat.
//             LENGTH  Beats of a vector.
//             REPEAT  Passes over a vector.
// Latency     2 cycles. One beat per cycle, no gap between repetitions or vectors.
// Contract    Room for two vectors. A beat is freed while it is emitted for the last time. If LENGTH is 1
//             and REPEAT is not, there is no memory, and the beat is freed after that. Signals s_ready and
//             m_* depend on registers only. `last` marks the last beat of a pass. `able` announces a beat:
//             it enters the output at an edge with m_ready || !m_valid. This beat is number `index` of the
//             LENGTH * REPEAT beats of a vector.
`default_nettype none
module hg_replay #(
    parameter integer WIDTH  = 8,
    parameter integer LENGTH = 4,
    parameter integer REPEAT = 2
) (
    input  wire                                                          clk,
    input  wire                                                          rst,
    input  wire [WIDTH-1:0]                                              s_data,
    input  wire                                                          s_valid,
    output wire                                                          s_ready,
    output wire [WIDTH-1:0]                                              m_data,
    output wire                                                          m_last,
    output wire                                                          m_valid,
    input  wire                                                          m_ready,
    output wire                                                          able,
    output wire [((LENGTH*REPEAT <= 1) ? 1 : $clog2(LENGTH*REPEAT))-1:0] index
);
    localparam integer BEATS = LENGTH * REPEAT;
    localparam integer IW    = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam integer FROM  = (REPEAT > 1) ? BEATS - LENGTH : 1;   // first beat of the last pass

    reg [WIDTH-1:0] data_reg;
    reg             valid_reg;
    reg             late_reg;     // the next beat belongs to the last pass

    wire push    = s_valid && s_ready;
    wire advance = m_ready || !valid_reg, read = advance && able;

    assign m_valid = valid_reg;
    assign m_data  = data_reg;

    wire [IW-1:0] after;
    hg_index #(.N(BEATS)) count (.clk(clk), .rst(rst), .step(read), .index(index), .next(after));
    always @(posedge clk) begin
        if (read) late_reg <= after >= FROM[IW-1:0];
        if (rst) late_reg <= 1'b0;
    end

    generate
        if (LENGTH == 1 && REPEAT > 1) begin : register
            // The vector being emitted, and the one that waits for it.
            reg [WIDTH-1:0] wait_reg;
            reg             waits_reg, ready_reg;   // ready_reg = 0: both are occupied
            reg             end_reg;                // the current pass is the last one
            wire            done = m_ready && end_reg;
            wire            load = !valid_reg || done;

            assign s_ready = ready_reg;
            assign m_last  = 1'b1;
            assign able    = waits_reg || (valid_reg && !end_reg);

            always @(posedge clk) begin
                if (ready_reg) wait_reg <= s_data;
                if (load) begin
                    data_reg  <= wait_reg;
                    valid_reg <= waits_reg;
                end
                waits_reg <= push || !(ready_reg || done);
                ready_reg <= ready_reg ? !s_valid || !(waits_reg || valid_reg) || (!waits_reg && done) : done;
                if (advance) end_reg <= late_reg;
                if (rst) begin
                    waits_reg <= 1'b0;
                    ready_reg <= 1'b1;
                    valid_reg <= 1'b0;
                    end_reg   <= 1'b0;
                end
            end
        end else begin : memory
            localparam integer DEPTH = (REPEAT == 1 && LENGTH > 2) ? 4 : 2 * LENGTH;
            localparam integer AW = $clog2(DEPTH);
            localparam integer CW = $clog2(DEPTH + 1);
            localparam integer LW = (LENGTH <= 1) ? 1 : $clog2(LENGTH);
            localparam [AW-1:0] TOP = DEPTH[AW-1:0] - 1'b1;
            localparam [CW-1:0] FULL = DEPTH[CW-1:0], NEARLY = FULL - 1'b1, ALMOST = NEARLY - 1'b1;
            localparam [CW-1:0] NONE = {CW{1'b0}}, ONE = NONE + 1'b1, TWO = ONE + 1'b1;
            localparam [LW-1:0] LAST_BEAT = LENGTH[LW-1:0] - 1'b1;

            // A beat in use is never read at the edge at which its address is written.
            (* no_rw_check *) reg [WIDTH-1:0] mem [0:DEPTH-1];
            reg [AW-1:0]    write_reg;
            // Counts lag one cycle: s_valid and m_ready, which arrive late, enter through registers.
            reg [CW-1:0]    fill_reg;     // beats stored and not freed, before pushed_reg and freed_reg
            reg [CW-1:0]    fresh_reg;    // beats stored and never read, before pushed_reg and first_reg
            reg             pushed_reg, freed_reg, first_reg, last_reg;
            reg             ready_reg;    // fewer than DEPTH beats are stored
            reg             some_reg;     // a stored beat was never read
            reg             again_reg;    // all beats of this pass were read before
            reg             able_reg;     // a beat can be read: some_reg or again_reg
            wire [AW-1:0]   place;        // address of the next beat
            wire [LW-1:0]   beat;         // its number within a pass

            wire end_pass = REPEAT < 2 || late_reg, again = REPEAT > 1 && again_reg;
            wire first    = advance && some_reg && !again;
            // In the last pass again_reg is 1: every advance reads a beat.
            wire free     = ((REPEAT > 1) ? late_reg : some_reg) && advance;
            wire nearly   = fill_reg == ((pushed_reg == freed_reg) ? NEARLY : freed_reg ? FULL : ALMOST);
            wire empties  = !again && fresh_reg == ((pushed_reg == first_reg) ? ONE : first_reg ? TWO : NONE);
            // Precompute both next states of ready_reg, some_reg and able_reg, so that late signals only
            // select one (one LUT level).
            (* keep *) wire stays, ends, left, held, more, less;
            wire end_beat = beat == LAST_BEAT;
            assign stays = push ? !nearly : ready_reg, ends = able_reg && end_beat;
            assign held  = push || some_reg, left = push || (some_reg && !empties);
            assign less  = held || again, more = left || (REPEAT > 1 && (ends ? !end_pass : again_reg));

            assign s_ready = ready_reg;
            assign m_last  = last_reg;
            assign able    = able_reg;

            wire [AW-1:0] write_next;
            wire [CW-1:0] fill_next, fresh_next;
            wire          top = write_reg == TOP;
            hg_next #(.W(AW)) writes (.at(write_reg), .down(1'b0), .wrap(top), .next(write_next));
            hg_next #(.W(CW)) filled (.at(fill_reg), .down(freed_reg), .wrap(1'b0), .next(fill_next));
            hg_next #(.W(CW)) unread (.at(fresh_reg), .down(first_reg), .wrap(1'b0), .next(fresh_next));

            always @(posedge clk) begin
                if (push) begin
                    mem[write_reg] <= s_data;
                    write_reg <= write_next;
                end
                if (advance) begin
                    data_reg  <= mem[place];
                    last_reg  <= end_beat;
                    valid_reg <= able_reg;
                end
                if (advance && ends) again_reg <= !end_pass;
                if (pushed_reg != freed_reg) fill_reg  <= fill_next;
                if (pushed_reg != first_reg) fresh_reg <= fresh_next;
                {pushed_reg, freed_reg, first_reg} <= {push, free, first};
                // m_ready arrives late: logic independent of it stays in a separate LUT before the last
                // one.
                ready_reg <= free || stays;
                some_reg  <= advance ? left : held;
                able_reg  <= advance ? more : less;
                if (rst) begin
                    write_reg <= {AW{1'b0}};
                    {fill_reg, fresh_reg} <= {2*CW{1'b0}};
                    {pushed_reg, freed_reg, first_reg, some_reg, again_reg, able_reg, valid_reg} <= 7'd0;
                    ready_reg <= 1'b1;
                end
            end

            // A pass reads one half of the memory. With a single pass, addresses wrap around the whole
            // memory.
            reg half_reg;
            always @(posedge clk) begin
                if (advance && ends && end_pass) half_reg <= !half_reg;
                if (rst) half_reg <= 1'b0;
            end
            if (REPEAT == 1 || LENGTH == (1 << LW)) begin : numbered
                assign beat = index[LW-1:0];
            end else begin : counted
                reg  [LW-1:0] beat_reg;
                wire [LW-1:0] beat_next;
                hg_next #(.W(LW)) beats (.at(beat_reg), .down(1'b0), .wrap(end_beat), .next(beat_next));
                assign beat = beat_reg;
                always @(posedge clk) begin
                    if (read) beat_reg <= beat_next;
                    if (rst) beat_reg <= {LW{1'b0}};
                end
            end
            if (REPEAT > 1 && LENGTH == (1 << LW)) begin : halves
                assign place = {half_reg, beat};
            end else begin : around
                localparam [AW-1:0] HALF = LENGTH[AW-1:0];
                reg  [AW-1:0] read_reg;
                wire [AW-1:0] read_next;
                wire [AW-1:0] back = (half_reg != end_pass) ? HALF : {AW{1'b0}};
                hg_next #(.W(AW)) reads (.at(read_reg), .down(1'b0), .wrap(1'b0), .next(read_next));
                assign place = read_reg;
                always @(posedge clk) begin
                    if (read) read_reg <= (REPEAT > 1 && end_beat) ? back : read_next;
                    if (rst) read_reg <= {AW{1'b0}};
                end
            end
        end
    endgenerate
endmodule
`default_nettype wire
