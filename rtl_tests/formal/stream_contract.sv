// stream_contract: assertions about the beats of a stream through a unit.
//
// Purpose     The unit turns every IN_BEATS input beats (a lap) into OUT_BEATS output beats. Each output bit is a bit
//             of an input beat of the lap, or a constant, as SOURCE specifies. Beats are then never lost, repeated,
//             changed or reordered. The solver chooses one beat (`mark`). It is stored when accepted and compared when
//             it leaves. A property of an arbitrary beat holds for all beats.
// Parameters  SOURCE   For bit b of beat j of a lap, 24 bits at 24 * (j * OUT_W + b): number of the input beat
//                      (12 bits), bit of it (10 bits) and kind (2 bits). Kinds: 0 that bit, 1 constant 0,
//                      2 constant 1, 3 any value.
//             NEED     16 bits per beat of a lap: the last input beat for which it waits, even if its bits come from
//                      others or are constants. 4095: unspecified.
//             ROOM     16 bits per beat of a lap. While this beat is the next one to leave, and fewer than ROOM beats
//                      of the lap were accepted, the unit accepts more. 0: unspecified.
//             MOST     Bound of the beats accepted ahead of the lap that is being emitted.
//             LATENCY  Most cycles without an output beat, with m_ready, while a complete beat waits.
//             THROUGH  1: a beat may leave in the cycle in which it is offered; its source holds it.
// Ports       others   The ports outside this pair do not stall the unit.
`default_nettype none
module stream_contract #(
    parameter integer IN_W      = 1,
    parameter integer OUT_W     = 1,
    parameter integer IN_BEATS  = 1,
    parameter integer OUT_BEATS = 1,
    parameter [24*OUT_W*OUT_BEATS-1:0] SOURCE = 0,
    parameter [16*OUT_BEATS-1:0]       NEED   = 0,
    parameter [16*OUT_BEATS-1:0]       ROOM   = 0,
    parameter integer MOST      = 4,
    parameter integer LATENCY   = 1,
    parameter integer THROUGH   = 0
) (
    input wire             clk,
    input wire             rst,
    input wire             mark,
    input wire             others,
    input wire [IN_W-1:0]  s_data,
    input wire             s_valid,
    input wire             s_ready,
    input wire [OUT_W-1:0] m_data,
    input wire             m_valid,
    input wire             m_ready
);
    localparam integer W  = $clog2(MOST + 2 * IN_BEATS + 3) + 1;
    localparam integer PW = $clog2(OUT_BEATS + 1);
    localparam integer LW = $clog2(LATENCY + 3);
    localparam signed [W-1:0] LAP = IN_BEATS;

    // The state is undefined before the first reset. Beats are numbered from the lap of the next output beat.
    reg                known_reg = 1'b0, marked_reg = 1'b0, begun_reg = 1'b0;
    reg signed [W-1:0] ahead_reg = 0, at_reg = 0;    // accepted beats; number of the marked one
    reg [PW-1:0]       place_reg = 0;                // emitted beats
    reg [IN_W-1:0]     kept_reg = 0;                 // the marked beat
    reg [LW-1:0]       waited_reg = 0, stuck_reg = 0;
    reg                held_reg = 1'b0, offered_reg = 1'b0;
    reg [OUT_W-1:0]    sent_reg = 0;
    reg [IN_W-1:0]     offer_reg = 0;

    wire take = s_valid && s_ready;
    wire send = m_valid && m_ready;
    wire lap  = send && place_reg == OUT_BEATS - 1;
    wire choose = take && mark && !marked_reg;
    wire signed [W-1:0] ahead_next = ahead_reg + (take ? 1 : 0) - (lap ? LAP : 0);
    wire signed [W-1:0] at         = choose ? ahead_reg : at_reg;
    wire signed [W-1:0] at_next    = at - (lap ? LAP : 0);

    // For the next output beat: its number, the violations, and the condition for which it waits.
    wire signed [W-1:0] taken = ahead_reg;
    wire [OUT_BEATS-1:0]       now, complete, room;
    wire [OUT_W*OUT_BEATS-1:0] early, wrong;
    genvar b, j;
    generate
        for (j = 0; j < OUT_BEATS; j = j + 1) begin : beats
            localparam integer NEEDS = NEED[16*j +: 16], LEAST = ROOM[16*j +: 16];
            assign now[j]      = place_reg == j;
            assign complete[j] = NEEDS != 4095 && (taken > NEEDS || (THROUGH != 0 && taken == NEEDS && s_valid));
            assign room[j]     = LEAST != 0 && taken < LEAST;
            for (b = 0; b < OUT_W; b = b + 1) begin : bits
                localparam integer AT = 24 * (j * OUT_W + b);
                localparam integer KIND = SOURCE[AT +: 2], PLACE = SOURCE[AT + 2 +: 10], BEAT = SOURCE[AT + 12 +: 12];
                if (KIND == 0) begin : moved
                    wire offered = THROUGH != 0 && s_valid && taken == BEAT;
                    wire marked  = marked_reg && at_reg == BEAT;
                    assign early[j*OUT_W+b] = taken <= BEAT && !offered;
                    assign wrong[j*OUT_W+b] = (offered && m_data[b] != s_data[PLACE])
                                           || (marked && m_data[b] != kept_reg[PLACE]);
                end else begin : constant
                    assign early[j*OUT_W+b] = 1'b0;
                    assign wrong[j*OUT_W+b] = (KIND == 1 && m_data[b]) || (KIND == 2 && !m_data[b]);
                end
            end
        end
    endgenerate
    wire [OUT_BEATS-1:0] is_early, is_wrong;
    generate
        for (j = 0; j < OUT_BEATS; j = j + 1) begin : any
            localparam integer NEEDS = NEED[16*j +: 16];
            assign is_early[j] = now[j] && (|early[j*OUT_W +: OUT_W] || (NEEDS != 4095 && !complete[j]));
            assign is_wrong[j] = now[j] && |wrong[j*OUT_W +: OUT_W];
        end
    endgenerate

    always @(posedge clk) begin
        begun_reg   <= 1'b1;
        ahead_reg   <= ahead_next;
        at_reg      <= at_next;
        if (choose) kept_reg <= s_data;
        marked_reg  <= (marked_reg || choose) && !at_next[W-1];
        if (send) place_reg <= lap ? 0 : place_reg + 1'b1;
        if (m_valid) waited_reg <= 0;
        else if (|(now & complete) && m_ready && waited_reg <= LATENCY) waited_reg <= waited_reg + 1'b1;
        if (take || m_valid) stuck_reg <= 0;
        else if (s_valid && others && m_ready && stuck_reg <= LATENCY) stuck_reg <= stuck_reg + 1'b1;
        held_reg    <= m_valid && !m_ready && !rst;
        sent_reg    <= m_data;
        offered_reg <= s_valid && !s_ready && !rst;
        offer_reg   <= s_data;
        if (rst) begin
            known_reg  <= 1'b1;
            ahead_reg  <= 0;
            place_reg  <= 0;
            marked_reg <= 1'b0;
            waited_reg <= 0;
            stuck_reg  <= 0;
        end
    end

    always @* begin
        if (!begun_reg) assume (rst);
        if (THROUGH != 0 && offered_reg) assume (s_valid && s_data == offer_reg);
        if (known_reg) begin
            // An output beat entered before and is unchanged: no beat is lost, changed, repeated or reordered.
            if (m_valid) created: assert (is_early == 0);
            if (m_valid) changed: assert (is_wrong == 0);
            // The unit accepts no more than it has room for, and emits complete beats.
            if (1'b1) crowded: assert (taken <= MOST);
            if (!rst && |(now & room)) refused: assert (s_ready);
            if (1'b1) late: assert (waited_reg <= LATENCY);
            if (1'b1) stuck: assert (stuck_reg <= LATENCY);
            // An offer is stable until accepted.
            if (held_reg) withdrawn: assert (m_valid);
            if (held_reg) moved: assert (m_data == sent_reg);
        end
    end
endmodule
`default_nettype wire
