// hg_width: Stream width converter between beats of IN and beats of OUT elements.
//
// Purpose     Regroups a stream of elements at any ratio, integer or not (a gearbox). Both sides may divide
//             the stream into groups, each of which begins a new beat.
// Parameters  UNIT       Bits of an element.
//             IN         Elements of an input beat.
//             OUT        Elements of an output beat.
//             IN_GROUP   Elements of an input group. In its last beat, lanes after the last element are
//                        ignored. IN is equivalent to any multiple of it.
//             OUT_GROUP  Elements of an output group. Such lanes of its last beat are 0.
// Latency     An output beat is offered 1 cycle after the beat with its last element was accepted, or 1
//             cycle after the previous output beat was accepted. Signal s_ready is 1 in a cycle if and only
//             if count <= ROOM. Here count = elements accepted - elements emitted before this cycle. Both
//             count whole beats, so m_ready of this cycle does not matter. The constants are:
//               STEP = gcd(IN, OUT) if no group ends within a beat, or if the groups are equal;
//                      gcd(IN, OUT, IN_GROUP, OUT_GROUP) otherwise.
//               ROOM = OUT if STEP is IN or OUT, else 2 * OUT - STEP.
//             Equal groups that end within a beat count as if rounded up to a multiple of STEP, on
//             both sides (the last beats have that many elements more). If an output beat consists of
//             two or more whole input beats (hg_width_widen), the first of these is always accepted.
//             The others are accepted while no beat is offered. This differs only after shorter last beats.
// Contract    Elements keep their order, first element in the low bits. A frame must be whole beats and
//             groups on both sides (nothing is flushed).
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
    // Beats of a group, and elements of its last beat: processed, and real.
    localparam integer IN_BEATS  = (IN_GROUP + IN - 1) / IN;
    localparam integer OUT_BEATS = (OUT_GROUP + OUT - 1) / OUT;
    localparam integer IN_TAIL   = IN_GROUP + ROUND - (IN_BEATS - 1) * IN;
    localparam integer OUT_TAIL  = OUT_GROUP + ROUND - (OUT_BEATS - 1) * OUT;
    localparam integer OUT_REAL  = OUT_TAIL - ROUND;

    wire [OUT*UNIT-1:0] beat;

    // Position of the next beat in its group, where that matters.
    wire in_last, out_last;
    generate
        if (IN_TAIL == IN || IN_BEATS == 1) begin : in_alike
            assign in_last = 1'b1;
        end else begin : in_beats
            hg_loop #(.N(IN_BEATS)) beats (
                .clk(clk), .rst(rst), .step(s_valid && s_ready), .last(in_last)
            );
        end
        if (OUT_REAL == OUT || OUT_BEATS == 1) begin : out_alike
            assign out_last = 1'b1;
        end else begin : out_beats
            hg_loop #(.N(OUT_BEATS)) beats (
                .clk(clk), .rst(rst), .step(m_valid && m_ready), .last(out_last)
            );
        end
    endgenerate

    wire [OUT*UNIT-1:0] real_lanes = ~({OUT*UNIT{1'b1}} << (OUT_REAL * UNIT));
    assign m_data = beat & (out_last ? real_lanes : {OUT*UNIT{1'b1}});

    generate
        if (STEP == OUT) begin : narrower
            hg_width_narrow #(.WIDTH(OUT*UNIT), .COUNT(IN / OUT), .TAIL(IN_TAIL / OUT)) narrow (
                .clk(clk), .rst(rst),
                .s_data(s_data), .s_last(in_last), .s_valid(s_valid), .s_ready(s_ready),
                .m_data(beat), .m_valid(m_valid), .m_ready(m_ready)
            );
        end else if (STEP == IN && OUT_TAIL > IN) begin : wider
            wire unused = &{1'b0, in_last};
            hg_width_widen #(
                .WIDTH(IN*UNIT), .COUNT(OUT / IN), .TAIL(OUT_TAIL / IN), .BEATS(OUT_BEATS)
            ) widen (
                .clk(clk), .rst(rst), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready),
                .m_data(beat), .m_valid(m_valid), .m_ready(m_ready)
            );
        end else begin : gearbox
            hg_width_gearbox #(
                .WIDTH(STEP*UNIT), .IN(IN / STEP), .OUT(OUT / STEP),
                .IN_TAIL(IN_TAIL / STEP), .OUT_TAIL(OUT_TAIL / STEP)
            ) box (
                .clk(clk), .rst(rst),
                .s_data(s_data), .s_last(in_last), .s_valid(s_valid), .s_ready(s_ready),
                .m_data(beat), .m_last(out_last), .m_valid(m_valid), .m_ready(m_ready)
            );
        end
    endgenerate
endmodule
`default_nettype wire
