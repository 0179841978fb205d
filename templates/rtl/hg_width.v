// hg_width: stream width converter between beats of IN and beats of OUT elements.
//
// Purpose     regroups a stream of elements; any ratio, integer or not (a gearbox).
// Parameters  UNIT  bits of an element
//             IN    elements of an input beat
//             OUT   elements of an output beat
// Latency     an output beat leaves 1 cycle after the input beat that completes it; one beat a
//             cycle on the side that moves more beats.
// Contract    elements keep their order, first element in the low bits; a frame must be a
//             multiple of IN and of OUT elements (nothing is flushed).
`default_nettype none
module hg_width #(
    parameter integer UNIT = 1,
    parameter integer IN   = 6,
    parameter integer OUT  = 4
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

    // The store holds whole elements, the oldest in the low bits. It accepts an input beat
    // whenever fewer than two output beats are complete, so neither side waits for the other.
    localparam integer STEP = gcd(IN, OUT);
    localparam integer ROOM = (STEP == IN || STEP == OUT) ? OUT : 2 * OUT - STEP;
    localparam integer CAPACITY = ROOM + IN;
    localparam integer CW = $clog2(CAPACITY + 1);
    localparam [CW-1:0] IN_C   = IN[CW-1:0];
    localparam [CW-1:0] OUT_C  = OUT[CW-1:0];
    localparam [CW-1:0] ROOM_C = ROOM[CW-1:0];

    reg [CAPACITY*UNIT-1:0] store_reg;
    reg [CW-1:0]            count_reg;

    wire pop  = m_valid && m_ready;
    wire push = s_valid && s_ready;
    wire [CW-1:0] kept = pop ? count_reg - OUT_C : count_reg;
    wire [CAPACITY*UNIT-1:0] shifted = pop ? store_reg >> (OUT * UNIT) : store_reg;

    assign m_valid = count_reg >= OUT_C;
    assign m_data  = store_reg[OUT*UNIT-1:0];
    assign s_ready = count_reg <= ROOM_C;

    reg [CAPACITY*UNIT-1:0] store_next;
    integer e;
    always @* begin
        store_next = shifted;
        for (e = 0; e <= ROOM; e = e + STEP)
            if (kept == e[CW-1:0]) store_next[e*UNIT +: IN*UNIT] = s_data;
    end

    always @(posedge clk) begin
        store_reg <= push ? store_next : shifted;
        count_reg <= push ? kept + IN_C : kept;
        if (rst) count_reg <= {CW{1'b0}};
    end
endmodule
`default_nettype wire
