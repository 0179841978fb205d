// stream_contract: what holds of every stream through a unit, as assertions about the beats at its ports.
//
// Purpose     The unit turns every IN_BEATS beats that it takes (a lap) into OUT_BEATS beats that it sends, each bit
//             of which is a bit of one of them, or a constant. SOURCE says which: beats are then neither lost nor
//             sent twice, changed or sent in another order. One beat, chosen freely by the solver (`mark`), is
//             remembered when it is taken and compared when it leaves; what holds of any one holds of all.
// Parameters  SOURCE   for bit b of beat j of a lap, 24 bits at 24 * (j * OUT_W + b): number of the beat taken
//                      (12 bits), bit of it (10 bits) and kind (2 bits): 0 that bit, 1 constant 0, 2 constant 1,
//                      3 anything
//             NEED     16 bits for each beat of a lap: the last beat that it waits for, though it may be made of
//                      others or of constants; 4095: not said
//             ROOM     16 bits for each beat of a lap: while it is the next one to be sent, and fewer beats than this
//                      of the lap were taken, the unit takes more; 0: not said
//             MOST     no unit takes more beats ahead of the lap that it sends
//             LATENCY  cycles without a beat at the output, with m_ready, before one that has all it needs
//             THROUGH  1: a beat may leave in the cycle in which it is offered; its source holds it
// Ports       others   the ports beside this pair do not keep the unit waiting
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

    // Nothing is known before the first reset. Beats are numbered from the lap of the next beat to be sent.
    reg                known_reg = 1'b0, marked_reg = 1'b0, begun_reg = 1'b0;
    reg signed [W-1:0] ahead_reg = 0, at_reg = 0;    // beats taken; number of the marked one
    reg [PW-1:0]       place_reg = 0;                // beats sent
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

    // Of the beat that is sent next: which one it is, what stands against it, and what it waits for.
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
            // What leaves came in, and is that beat: none is lost, changed, sent twice or out of turn.
            if (m_valid) created: assert (is_early == 0);
            if (m_valid) changed: assert (is_wrong == 0);
            // No more is taken than there is room for, and what is complete is sent.
            if (1'b1) crowded: assert (taken <= MOST);
            if (!rst && |(now & room)) refused: assert (s_ready);
            if (1'b1) late: assert (waited_reg <= LATENCY);
            if (1'b1) stuck: assert (stuck_reg <= LATENCY);
            // An offer stays as it is until it is taken.
            if (held_reg) withdrawn: assert (m_valid);
            if (held_reg) moved: assert (m_data == sent_reg);
        end
    end
endmodule
`default_nettype wire
