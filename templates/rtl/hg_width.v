// hg_width: stream width converter between beats of IN and beats of OUT elements.
//
// Purpose     regroups a stream of elements; any ratio, integer or not (a gearbox). Both sides may
//             divide it into groups, each of which begins a new beat.
// Parameters  UNIT       bits of an element
//             IN         elements of an input beat
//             OUT        elements of an output beat
//             IN_GROUP   elements of a group of the input: in its last beat, lanes behind the last
//                        element are ignored; IN is as good as any multiple of it
//             OUT_GROUP  elements of a group of the output: such lanes of its last beat are 0
// Latency     an output beat is offered 1 cycle after the beat with its last element was taken, or
//             1 cycle after the beat before it was taken. s_ready is 1 in a cycle if and only if
//             count <= ROOM, where count = elements taken - elements sent before this cycle; both
//             in whole beats, so m_ready of this cycle does not matter. With
//               STEP = gcd(IN, OUT) if no group ends within a beat, or if the groups are equal;
//                      gcd(IN, OUT, IN_GROUP, OUT_GROUP) otherwise
//               ROOM = OUT if STEP is IN or OUT, else 2 * OUT - STEP
//             Equal groups that end within a beat count as if rounded up to a multiple of STEP, on
//             both sides (the last beats have that many elements more).
// Contract    elements keep their order, first element in the low bits; a frame must be whole beats
//             and groups on both sides (nothing is flushed).
`default_nettype none
module hg_width #(
    parameter integer UNIT      = 1,
    parameter integer IN        = 6,
    parameter integer OUT       = 4,
    parameter integer IN_GROUP  = IN,
    parameter integer OUT_GROUP = OUT
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [IN*UNIT-1:0]  s_data,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [OUT*UNIT-1:0] m_data,
    output wire                m_valid,
    input  wire                m_ready
);
    function integer gcd(input integer a, input integer b);
        integer x, y, r;
        begin
            x = a;
            y = b;
            while (y != 0) begin
                r = x % y;
                x = y;
                y = r;
            end
            gcd = x;
        end
    endfunction

    localparam integer BOTH  = gcd(IN, OUT);
    localparam integer WHOLE = (IN_GROUP % IN == 0 && OUT_GROUP % OUT == 0) ? 1 : 0;
    localparam integer EQUAL = (WHOLE == 0 && IN_GROUP == OUT_GROUP) ? 1 : 0;
    localparam integer STEP  = (WHOLE != 0 || EQUAL != 0) ? BOTH : gcd(BOTH, gcd(IN_GROUP, OUT_GROUP));
    localparam integer ROUND = (EQUAL != 0) ? (STEP - IN_GROUP % STEP) % STEP : 0;
    // Beats of a group, and elements of its last beat: taken or sent, and real.
    localparam integer IN_BEATS  = (IN_GROUP + IN - 1) / IN;
    localparam integer OUT_BEATS = (OUT_GROUP + OUT - 1) / OUT;
    localparam integer IN_TAIL   = IN_GROUP + ROUND - (IN_BEATS - 1) * IN;
    localparam integer OUT_TAIL  = OUT_GROUP + ROUND - (OUT_BEATS - 1) * OUT;
    localparam integer OUT_REAL  = OUT_TAIL - ROUND;

    // The store holds whole elements, the oldest in the low bits. It accepts an input beat
    // whenever fewer than two output beats are complete, so neither side waits for the other.
    localparam integer ROOM = (STEP == IN || STEP == OUT) ? OUT : 2 * OUT - STEP;
    localparam integer CAPACITY = ROOM + IN;
    // All counts are in steps.
    localparam integer STEPS      = CAPACITY / STEP;
    localparam integer IN_S       = IN / STEP;
    localparam integer OUT_S      = OUT / STEP;
    localparam integer IN_TAIL_S  = IN_TAIL / STEP;
    localparam integer OUT_TAIL_S = OUT_TAIL / STEP;
    localparam integer ROOM_S     = ROOM / STEP;
    localparam integer CW = $clog2(STEPS + 1);

    reg [CAPACITY*UNIT-1:0] store_reg;
    reg [CW-1:0]            count_reg;

    wire pop  = m_valid && m_ready;
    wire push = s_valid && s_ready;

    // Which beat of a group comes next, where that matters.
    wire in_last, out_last;
    generate
        if (IN_TAIL == IN || IN_BEATS == 1) begin : in_alike
            assign in_last = 1'b1;
        end else begin : in_beats
            localparam integer W = $clog2(IN_BEATS);
            localparam [W-1:0] LAST = IN_BEATS[W-1:0] - 1'b1;
            reg [W-1:0] beat_reg;
            assign in_last = beat_reg == LAST;
            always @(posedge clk) begin
                if (push) beat_reg <= in_last ? {W{1'b0}} : beat_reg + 1'b1;
                if (rst) beat_reg <= {W{1'b0}};
            end
        end
        if (OUT_REAL == OUT || OUT_BEATS == 1) begin : out_alike
            assign out_last = 1'b1;
        end else begin : out_beats
            localparam integer W = $clog2(OUT_BEATS);
            localparam [W-1:0] LAST = OUT_BEATS[W-1:0] - 1'b1;
            reg [W-1:0] beat_reg;
            assign out_last = beat_reg == LAST;
            always @(posedge clk) begin
                if (pop) beat_reg <= out_last ? {W{1'b0}} : beat_reg + 1'b1;
                if (rst) beat_reg <= {W{1'b0}};
            end
        end
    endgenerate

    wire [CW-1:0] more = in_last ? IN_TAIL_S[CW-1:0] : IN_S[CW-1:0];
    wire [CW-1:0] less = out_last ? OUT_TAIL_S[CW-1:0] : OUT_S[CW-1:0];
    wire [CW-1:0] kept = pop ? count_reg - less : count_reg;
    wire [CAPACITY*UNIT-1:0] rest = out_last ? store_reg >> (OUT_TAIL * UNIT) : store_reg >> (OUT * UNIT);
    wire [CAPACITY*UNIT-1:0] shifted = pop ? rest : store_reg;
    wire [OUT*UNIT-1:0] real_lanes = ~({OUT*UNIT{1'b1}} << (OUT_REAL * UNIT));

    assign m_valid = count_reg >= less;
    assign m_data  = store_reg[OUT*UNIT-1:0] & (out_last ? real_lanes : {OUT*UNIT{1'b1}});
    assign s_ready = count_reg <= ROOM_S[CW-1:0];

    // The new elements go behind those that are kept, at most ROOM: an input beat of one step to the
    // place with that number, a longer one is shifted there by the bits of `kept`.
    localparam integer SW   = STEP * UNIT;
    localparam integer BITS = $clog2(ROOM_S + 1);
    wire [CAPACITY*UNIT-1:0] placed, store_next;
    wire [STEPS-1:0]         stays;
    genvar g;
    generate
        if (IN_S == 1) begin : one_step
            assign placed = {STEPS{s_data}};
        end else begin : more_steps
            wire [(BITS+1)*CAPACITY*UNIT-1:0] moved;
            assign moved[0 +: CAPACITY*UNIT] = {{ROOM*UNIT{1'b0}}, s_data};
            for (g = 0; g < BITS; g = g + 1) begin : distance
                wire [CAPACITY*UNIT-1:0] from = moved[g*CAPACITY*UNIT +: CAPACITY*UNIT];
                assign moved[(g+1)*CAPACITY*UNIT +: CAPACITY*UNIT] = kept[g] ? from << (SW << g) : from;
            end
            assign placed = moved[BITS*CAPACITY*UNIT +: CAPACITY*UNIT];
        end
        for (g = 0; g < STEPS; g = g + 1) begin : place
            assign stays[g] = (IN_S == 1) ? kept != g : g < ROOM_S && kept > g;
            assign store_next[g*SW +: SW] = stays[g] ? shifted[g*SW +: SW] : placed[g*SW +: SW];
        end
    endgenerate

    always @(posedge clk) begin
        store_reg <= push ? store_next : shifted;
        count_reg <= push ? kept + more : kept;
        if (rst) count_reg <= {CW{1'b0}};
    end
endmodule
`default_nettype wire
