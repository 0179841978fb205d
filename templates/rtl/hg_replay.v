// hg_replay: vector buffer that sends every vector of LENGTH beats REPEAT times.
//
// Purpose     feeds a folded matrix-vector unit: the next vector is stored while the current one
//             is repeated.
// Parameters  WIDTH   bits of a beat
//             LENGTH  beats of a vector
//             REPEAT  how often a vector is sent
// Latency     2 cycles; one beat a cycle, no gap between repetitions or vectors
// Contract    room for two vectors; a beat is freed while it is sent for the last time or, if
//             LENGTH is 1 and REPEAT is not (then there is no memory), when it was sent for the
//             last time. s_ready and m_* depend on registers only. `last` marks the last beat of a
//             repetition; next: a beat comes to the output at this edge.
`default_nettype none
module hg_replay #(
    parameter integer WIDTH  = 8,
    parameter integer LENGTH = 4,
    parameter integer REPEAT = 2
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [WIDTH-1:0] m_data,
    output wire             m_last,
    output wire             m_valid,
    input  wire             m_ready,
    output wire             next
);
    localparam integer RW = (REPEAT <= 1) ? 1 : $clog2(REPEAT);
    localparam integer ONE_MORE = REPEAT - 2;

    reg [WIDTH-1:0] data_reg;
    reg             valid_reg;
    reg [RW-1:0]    pass_reg;
    reg             end_reg;      // pass_reg is that of the last pass

    wire push     = s_valid && s_ready;
    wire advance  = m_ready || !valid_reg;
    wire end_pass = REPEAT <= 1 || end_reg;
    wire next_end = pass_reg == ONE_MORE[RW-1:0];

    assign m_valid = valid_reg;
    assign m_data  = data_reg;

    generate
        if (LENGTH == 1 && REPEAT > 1) begin : register
            // The vector that is sent, and one that waits for it.
            reg [WIDTH-1:0] wait_reg;
            reg             waits_reg, ready_reg;   // not ready_reg: both are there
            wire            done = m_ready && end_pass;
            wire            load = !valid_reg || done;

            assign s_ready = ready_reg;
            assign m_last  = 1'b1;
            assign next    = advance && (waits_reg || (valid_reg && !end_pass));

            always @(posedge clk) begin
                if (ready_reg) wait_reg <= s_data;
                if (load) begin
                    data_reg  <= wait_reg;
                    valid_reg <= waits_reg;
                end
                waits_reg <= push || !(ready_reg || done);
                ready_reg <= ready_reg ? !s_valid || !(waits_reg || valid_reg) || (!waits_reg && done) : done;
                if (valid_reg && m_ready) begin
                    pass_reg <= end_pass ? {RW{1'b0}} : pass_reg + 1'b1;
                    end_reg  <= next_end;
                end
                if (rst) begin
                    waits_reg <= 1'b0;
                    ready_reg <= 1'b1;
                    valid_reg <= 1'b0;
                    pass_reg  <= {RW{1'b0}};
                    end_reg   <= 1'b0;
                end
            end
        end else begin : memory
            localparam integer DEPTH = (REPEAT == 1 && LENGTH > 2) ? 4 : 2 * LENGTH;
            localparam integer AW = $clog2(DEPTH);
            localparam integer CW = $clog2(DEPTH + 1);
            localparam integer LW = (LENGTH <= 1) ? 1 : $clog2(LENGTH);
            localparam [AW-1:0] TOP = DEPTH[AW-1:0] - 1'b1;
            localparam [AW-1:0] HALF = LENGTH[AW-1:0];
            localparam [CW-1:0] FULL = DEPTH[CW-1:0], NEARLY = FULL - 1'b1, ALMOST = NEARLY - 1'b1;
            localparam [CW-1:0] NONE = {CW{1'b0}}, ONE = NONE + 1'b1, TWO = ONE + 1'b1;
            localparam [LW-1:0] LAST_BEAT = LENGTH[LW-1:0] - 1'b1;

            // A beat that counts is never read at the edge at which its place is written.
            (* no_rw_check *) reg [WIDTH-1:0] mem [0:DEPTH-1];
            reg [AW-1:0]    write_reg, read_reg;
            // Counts are those of a cycle before: s_valid and m_ready, which come late, are in registers.
            reg [CW-1:0]    fill_reg;     // beats stored and not freed, before pushed_reg and freed_reg
            reg [CW-1:0]    fresh_reg;    // beats stored and never read, before pushed_reg and first_reg
            reg             pushed_reg, freed_reg, first_reg;
            reg             ready_reg;    // there are not DEPTH beats
            reg             some_reg;     // there is one that was never read
            reg             again_reg;    // all beats of this pass were read before
            reg             half_reg;     // which half of the memory is read
            reg [LW-1:0]    beat_reg;
            reg             last_reg;

            wire again    = REPEAT > 1 && again_reg;
            wire able     = again || some_reg;
            wire read     = advance && able;
            wire first    = read && !again;
            wire frees    = able && end_pass, free = frees && advance;
            wire nearly   = fill_reg == ((pushed_reg == freed_reg) ? NEARLY : freed_reg ? FULL : ALMOST);
            wire takes_last = !again
                && fresh_reg == ((pushed_reg == first_reg) ? ONE : first_reg ? TWO : NONE);
            wire end_beat = beat_reg == LAST_BEAT, ends = able && end_beat;

            assign s_ready = ready_reg;
            assign m_last  = last_reg;
            assign next    = read;

            // The next beat, the first one of this half or of the other one. A single pass goes around.
            wire [AW-1:0] back = (half_reg != end_pass) ? HALF : {AW{1'b0}};

            always @(posedge clk) begin
                if (push) begin
                    mem[write_reg] <= s_data;
                    write_reg <= (write_reg == TOP) ? {AW{1'b0}} : write_reg + 1'b1;
                end
                if (advance) begin
                    data_reg  <= mem[read_reg];
                    last_reg  <= end_beat;
                    valid_reg <= able;
                end
                if (read) begin
                    read_reg <= (REPEAT > 1 && end_beat) ? back : read_reg + 1'b1;
                    beat_reg <= end_beat ? {LW{1'b0}} : beat_reg + 1'b1;
                end
                if (advance && ends) begin
                    pass_reg  <= end_pass ? {RW{1'b0}} : pass_reg + 1'b1;
                    end_reg   <= next_end;
                    again_reg <= !end_pass;
                    half_reg  <= half_reg != end_pass;
                end
                if (pushed_reg != freed_reg) fill_reg  <= freed_reg ? fill_reg - 1'b1 : fill_reg + 1'b1;
                if (pushed_reg != first_reg) fresh_reg <= first_reg ? fresh_reg - 1'b1 : fresh_reg + 1'b1;
                pushed_reg <= push;
                freed_reg <= free;
                first_reg <= first;
                // m_ready comes late: whatever does not depend on it is said first.
                ready_reg <= (frees && advance) || (push ? !nearly : ready_reg);
                some_reg  <= push || (some_reg && !(takes_last && advance));
                if (rst) begin
                    write_reg <= {AW{1'b0}};
                    read_reg  <= {AW{1'b0}};
                    fill_reg  <= {CW{1'b0}};
                    fresh_reg <= {CW{1'b0}};
                    pushed_reg <= 1'b0;
                    freed_reg <= 1'b0;
                    first_reg <= 1'b0;
                    ready_reg <= 1'b1;
                    some_reg  <= 1'b0;
                    again_reg <= 1'b0;
                    half_reg  <= 1'b0;
                    beat_reg  <= {LW{1'b0}};
                    pass_reg  <= {RW{1'b0}};
                    end_reg   <= 1'b0;
                    valid_reg <= 1'b0;
                end
            end
        end
    endgenerate
endmodule
`default_nettype wire
