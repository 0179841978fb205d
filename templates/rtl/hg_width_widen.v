// hg_width_widen: Assembles output beats from whole input beats.
//
// Purpose     Part of hg_width: COUNT input beats side by side, the first in the low bits.
// Parameters  WIDTH  Bits of an input beat.
//             COUNT  Input beats in an output beat, at least 2.
//             TAIL   Input beats in the last output beat of a group, 2 to COUNT. Bits after them are
//                    undefined.
//             BEATS  Output beats of a group.
// Latency     1 cycle from the last input beat of an output beat.
// Contract    The first beat is always accepted: it waits in a separate register while an output beat is
//             offered. The others are accepted while none is offered; they shift the stored beats. Shorter
//             last output beats enter at one of two ends, through multiplexers. Where write enables of all
//             places cost less, the places have these instead. Outputs s_ready and m_* are registers.
`default_nettype none
module hg_width_widen #(
    parameter integer WIDTH = 4,
    parameter integer COUNT = 3,
    parameter integer TAIL  = 2,
    parameter integer BEATS = 2
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [WIDTH-1:0]       s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [COUNT*WIDTH-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer CW = $clog2(COUNT);
    localparam integer COUNT_1 = COUNT - 1, TAIL_1 = TAIL - 1;
    localparam [0:0] TWO_ENDS = TAIL < COUNT && BEATS > 1;

    reg [WIDTH-1:0] first_reg;    // the previous input beat; with enables, the first of an output beat
    reg [CW-1:0]    place_reg;
    reg             begun_reg;    // place_reg is not 0
    reg             valid_reg;
    reg             ready_reg;    // begun_reg or valid_reg is 0

    wire last, short;
    wire [CW-1:0] place_next;
    hg_next #(.W(CW)) places (.at(place_reg), .down(1'b0), .wrap(last), .next(place_next));
    wire push       = s_valid && ready_reg;
    wire begun_next = push ? !last : begun_reg;
    wire valid_next = (push && last) || (valid_reg && !m_ready);

    assign s_ready = ready_reg;
    assign m_valid = valid_reg;

    generate
        if (!TWO_ENDS) begin : alike
            assign short = TAIL < COUNT;
        end else begin : group
            localparam integer W = $clog2(BEATS);
            localparam [W-1:0] LAST = BEATS[W-1:0] - 1'b1;
            reg [W-1:0] beat_reg;
            wire [W-1:0] beat_next;
            hg_next #(.W(W)) beats (.at(beat_reg), .down(1'b0), .wrap(short), .next(beat_next));
            assign short = beat_reg == LAST;
            always @(posedge clk) begin
                if (push && last) beat_reg <= beat_next;
                if (rst) beat_reg <= {W{1'b0}};
            end
        end
    endgenerate
    assign last = place_reg == (short ? TAIL_1[CW-1:0] : COUNT_1[CW-1:0]);

    always @(posedge clk) begin
        if (push) place_reg <= place_next;
        begun_reg <= begun_next;
        valid_reg <= valid_next;
        ready_reg <= !begun_next || !valid_next;
        if (rst) begin
            place_reg <= {CW{1'b0}};
            begun_reg <= 1'b0;
            valid_reg <= 1'b0;
            ready_reg <= 1'b1;
        end
    end

    genvar g;
    generate
        if (!TWO_ENDS || 2 * WIDTH <= COUNT) begin : shift
            localparam integer MOST = TWO_ENDS ? COUNT : TAIL;
            reg  [MOST*WIDTH-1:0]     data_reg;
            wire [(MOST+1)*WIDTH-1:0] all  = {s_data, first_reg, data_reg[(MOST-1)*WIDTH-1:0]};
            wire [(TAIL+1)*WIDTH-1:0] some = {s_data, first_reg, data_reg[(TAIL-1)*WIDTH-1:0]};
            wire unused = &{1'b0, all[WIDTH-1:0], some[WIDTH-1:0]};
            always @(posedge clk) begin
                if (push) first_reg <= s_data;
                // Here s_ready is 1. Testing these registers instead of `push` saves a LUT level for the
                // many enables.
                if (s_valid && begun_reg && !valid_reg) begin
                    data_reg <= all[(MOST+1)*WIDTH-1:WIDTH];
                    if (short) data_reg[TAIL*WIDTH-1:0] <= some[(TAIL+1)*WIDTH-1:WIDTH];
                end
            end
            assign m_data[MOST*WIDTH-1:0] = data_reg;
            if (MOST < COUNT) begin : rest
                assign m_data[COUNT*WIDTH-1:MOST*WIDTH] = {(COUNT-MOST)*WIDTH{1'b0}};
            end
        end else begin : own
            always @(posedge clk) if (!begun_reg) first_reg <= s_data;
            for (g = 0; g < COUNT; g = g + 1) begin : slot
                localparam integer G = (g == 0) ? 1 : g;
                reg [WIDTH-1:0] data_reg;
                always @(posedge clk)
                    if (!valid_reg && place_reg == G[CW-1:0]) data_reg <= (g == 0) ? first_reg : s_data;
                assign m_data[g*WIDTH +: WIDTH] = data_reg;
            end
        end
    endgenerate
endmodule
`default_nettype wire
