// hg_width_gearbox: Beats of OUT steps from beats of IN steps, at any ratio.
//
// Purpose     Part of hg_width, for ratios where no side is whole beats of the other.
// Parameters  WIDTH     Bits of a step.
//             IN, OUT   Steps of an input and of an output beat.
//             IN_TAIL   Steps used of an input beat with s_last.
//             OUT_TAIL  Steps that leave with an output beat with m_last.
// Latency     As in hg_width.
// Contract    Input m_last describes the next output beat. Inputs s_last and m_last depend on registers
//             only.
`default_nettype none
module hg_width_gearbox #(
    parameter integer WIDTH    = 2,
    parameter integer IN       = 3,
    parameter integer OUT      = 2,
    parameter integer IN_TAIL  = IN,
    parameter integer OUT_TAIL = OUT
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [IN*WIDTH-1:0]  s_data,
    input  wire                 s_last,
    input  wire                 s_valid,
    output wire                 s_ready,
    output wire [OUT*WIDTH-1:0] m_data,
    input  wire                 m_last,
    output wire                 m_valid,
    input  wire                 m_ready
);
    // The store holds whole steps, the oldest in the low bits. It accepts an input beat whenever fewer than
    // two output beats are complete, so neither side waits for the other.
    localparam integer ROOM  = (IN == 1 || OUT == 1) ? OUT : 2 * OUT - 1;
    localparam integer STEPS = ROOM + IN;
    localparam integer CW    = $clog2(STEPS + 1);
    localparam integer BITS  = $clog2(ROOM + 1);

    reg [STEPS*WIDTH-1:0] store_reg;
    reg [CW-1:0]          count_reg;

    wire pop  = m_valid && m_ready;
    wire push = s_valid && s_ready;

    wire [CW-1:0] more = s_last ? IN_TAIL[CW-1:0] : IN[CW-1:0];
    wire [CW-1:0] less = m_last ? OUT_TAIL[CW-1:0] : OUT[CW-1:0];
    wire [CW-1:0] kept = pop ? count_reg - less : count_reg;
    wire [STEPS*WIDTH-1:0] rest = m_last ? store_reg >> (OUT_TAIL * WIDTH) : store_reg >> (OUT * WIDTH);
    wire [STEPS*WIDTH-1:0] shifted = pop ? rest : store_reg;

    assign m_valid = count_reg >= less;
    assign m_data  = store_reg[OUT*WIDTH-1:0];
    assign s_ready = count_reg <= ROOM[CW-1:0];

    // New elements are appended after the kept ones, at most ROOM. An input beat of one step goes to the
    // place with that number. A longer one is shifted there by the bits of `kept`.
    wire [STEPS*WIDTH-1:0] placed, store_next;
    wire [STEPS-1:0]       stays;
    genvar g;
    generate
        if (IN == 1) begin : one_step
            assign placed = {STEPS{s_data}};
        end else begin : more_steps
            for (g = 0; g < BITS; g = g + 1) begin : distance
                wire [STEPS*WIDTH-1:0] from;
                wire [STEPS*WIDTH-1:0] moved = kept[g] ? from << (WIDTH << g) : from;
                if (g == 0) begin : none
                    assign from = {{ROOM*WIDTH{1'b0}}, s_data};
                end else begin : shorter
                    assign from = distance[g-1].moved;
                end
            end
            assign placed = distance[BITS-1].moved;
        end
        for (g = 0; g < STEPS; g = g + 1) begin : place
            assign stays[g] = (IN == 1) ? kept != g : g < ROOM && kept > g;
            assign store_next[g*WIDTH +: WIDTH] = stays[g] ? shifted[g*WIDTH +: WIDTH]
                                                           : placed[g*WIDTH +: WIDTH];
        end
    endgenerate

    always @(posedge clk) begin
        store_reg <= push ? store_next : shifted;
        count_reg <= push ? kept + more : kept;
        if (rst) count_reg <= {CW{1'b0}};
    end
endmodule
`default_nettype wire
