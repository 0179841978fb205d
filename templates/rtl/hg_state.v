// hg_state: A tensor that goes from one frame to the next.
//
// Purpose     Frame n + 1 finds the beats that frame n left. A frame that starts a sequence finds the
//             initial state instead, and the beats of the frame before it are dropped.
// Parameters  WIDTH    Bits of a beat.
//             BEATS    Beats of the state.
//             INITIAL  Every beat of the initial state, if TABLE is 0.
//             TABLE    1: FILE has the beats of the initial state.
//             FILE     $readmemh file of BEATS words.
// Latency     2 cycles from a beat that is left, and from the beat of a frame, to the beat that is found.
//             One beat a cycle.
// Contract    a_* has a beat for each frame: 1 if it starts a sequence. b_* is the state that a frame
//             leaves, m_* the one that a frame finds. The first frame after reset finds the initial state
//             whatever its bit is, so the memory needs no contents at reset. Any later frame takes all
//             beats that the frame before left, also to drop them, so frames stay in step. The memory
//             holds one state; b_ready is 0 when it is full. Signals a_ready and b_ready are registers.
`default_nettype none
module hg_state #(
    parameter integer   WIDTH   = 8,
    parameter integer   BEATS   = 4,
    parameter [WIDTH-1:0] INITIAL = {WIDTH{1'b0}},
    parameter integer   TABLE   = 0,
    parameter           FILE    = ""
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             a_data,
    input  wire             a_valid,
    output wire             a_ready,
    input  wire [WIDTH-1:0] b_data,
    input  wire             b_valid,
    output wire             b_ready,
    output wire [WIDTH-1:0] m_data,
    output wire             m_valid,
    input  wire             m_ready
);
    localparam integer AW = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam integer CW = $clog2(BEATS + 1);
    localparam [AW-1:0] LAST   = BEATS[AW-1:0] - 1'b1;
    localparam [CW-1:0] NEARLY = BEATS[CW-1:0] - 1'b1;
    localparam [CW-1:0] ONE    = {{(CW-1){1'b0}}, 1'b1};

    // The bits of frames that have not taken their state.
    wire starts, begun, get, last;
    hg_fifo #(.WIDTH(1), .DEPTH(2)) frames (
        .clk(clk), .rst(rst),
        .s_data(a_data), .s_valid(a_valid), .s_ready(a_ready),
        .m_data(starts), .m_valid(begun), .m_ready(get && last)
    );

    // The beats that were left. No frame left any before the first.
    reg  [WIDTH-1:0] store [0:BEATS-1];
    reg  [AW-1:0]    write_reg, read_reg;
    reg  [CW-1:0]    count_reg;
    reg              ready_reg, some_reg, first_reg;
    wire             put = b_valid && b_ready;
    wire             pop = get && !first_reg;
    wire [AW-1:0]    write_next, read_next;
    wire [CW-1:0]    count_next;
    hg_next #(.W(AW)) writes (.at(write_reg), .down(1'b0), .wrap(write_reg == LAST), .next(write_next));
    hg_next #(.W(AW)) reads (.at(read_reg), .down(1'b0), .wrap(last), .next(read_next));
    hg_next #(.W(CW)) counts (.at(count_reg), .down(pop), .wrap(1'b0), .next(count_next));
    assign b_ready = ready_reg;
    assign last    = read_reg == LAST;

    reg  valid_reg, initial_reg;
    wire free = !valid_reg || m_ready;
    assign get = begun && free && (first_reg || some_reg);

    always @(posedge clk) begin
        if (put) store[write_reg] <= b_data;
        if (put) write_reg <= write_next;
        if (get) read_reg <= read_next;
        if (get && last) first_reg <= 1'b0;
        if (put != pop) begin
            count_reg <= count_next;
            ready_reg <= pop || count_reg != NEARLY;
            some_reg  <= put || count_reg != ONE;
        end
        if (free) valid_reg <= get;
        if (free) initial_reg <= first_reg || starts;
        if (rst) begin
            write_reg <= {AW{1'b0}};
            read_reg  <= {AW{1'b0}};
            count_reg <= {CW{1'b0}};
            ready_reg <= 1'b1;
            some_reg  <= 1'b0;
            first_reg <= 1'b1;
            valid_reg <= 1'b0;
        end
    end

    // The beat that was left and the initial one are read together.
    reg  [WIDTH-1:0] left_reg;
    wire [WIDTH-1:0] initial_beat;
    always @(posedge clk) if (free) left_reg <= store[read_reg];
    generate
        if (TABLE != 0) begin : several
            reg [WIDTH-1:0] mem [0:BEATS-1];
            reg [WIDTH-1:0] beat_reg;
            initial $readmemh(FILE, mem);
            always @(posedge clk) if (free) beat_reg <= mem[read_reg];
            assign initial_beat = beat_reg;
        end else begin : one
            assign initial_beat = INITIAL;
        end
    endgenerate
    assign m_data  = initial_reg ? initial_beat : left_reg;
    assign m_valid = valid_reg;

endmodule
`default_nettype wire
