// hg_fifo: Synchronous first-word-fall-through FIFO for a valid/ready stream.
//
// Purpose     Decouples the rates of two units.
// Parameters  WIDTH  Bits of a beat.
//             DEPTH  Capacity in beats, at least 1.
// Latency     1 cycle, full throughput. Beat k is offered 1 cycle after it was accepted or after beat k-1
//             left. Signal s_ready is 1 from the cycle after beat k-DEPTH left. With DEPTH 1 the rate is a
//             beat every other cycle.
// Contract    Beats leave in order and unchanged. Outputs s_ready and m_valid are registers. A small memory
//             is read in the cycle in which its word is needed (distributed RAM). A large one is read one
//             cycle ahead (block RAM), with the same timing.
`default_nettype none
module hg_fifo #(
    parameter integer WIDTH = 8,
    parameter integer DEPTH = 16
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [WIDTH-1:0] m_data,
    output wire             m_valid,
    input  wire             m_ready
);
    localparam integer AW = (DEPTH <= 1) ? 1 : $clog2(DEPTH);
    localparam integer CW = $clog2(DEPTH + 1);
    localparam [AW-1:0] LAST = DEPTH[AW-1:0] - 1'b1;
    localparam [CW-1:0] NEARLY = DEPTH[CW-1:0] - 1'b1;
    localparam [CW-1:0] ONE    = {{(CW-1){1'b0}}, 1'b1};
    localparam integer LARGE = (DEPTH >= 512 || (DEPTH > 64 && DEPTH * WIDTH > 16384)) ? 1 : 0;

    reg [WIDTH-1:0] mem [0:DEPTH-1];
    reg [AW-1:0]    write_reg, read_reg;
    reg [CW-1:0]    count_reg;
    reg             ready_reg, some_reg;    // count_reg is not DEPTH; is not 0

    wire push = s_valid && s_ready;
    wire pop  = m_valid && m_ready;
    wire [AW-1:0] read_inc, write_next;
    wire [CW-1:0] count_next;
    hg_next #(.W(AW)) reads (.at(read_reg), .down(1'b0), .wrap(read_reg == LAST), .next(read_inc));
    hg_next #(.W(AW)) writes (.at(write_reg), .down(1'b0), .wrap(write_reg == LAST), .next(write_next));
    hg_next #(.W(CW)) counts (.at(count_reg), .down(pop), .wrap(1'b0), .next(count_next));
    wire [AW-1:0] read_next = pop ? read_inc : read_reg;

    assign s_ready = ready_reg;
    assign m_valid = some_reg;

    generate
        if (LARGE != 0) begin : ahead
            // The word offered in the next cycle. A word that is being written bypasses the memory.
            reg [WIDTH-1:0] word_reg, past_reg;
            reg             goes_past_reg;
            always @(posedge clk) begin
                word_reg      <= mem[read_next];
                past_reg      <= s_data;
                goes_past_reg <= push && write_reg == read_next;
            end
            assign m_data = goes_past_reg ? past_reg : word_reg;
        end else begin : at_once
            assign m_data = mem[read_reg];
        end
    endgenerate

    always @(posedge clk) if (push) mem[write_reg] <= s_data;

    always @(posedge clk) begin
        if (push) write_reg <= write_next;
        read_reg <= read_next;
        if (push != pop) begin
            count_reg <= count_next;
            ready_reg <= pop || count_reg != NEARLY;
            some_reg  <= push || count_reg != ONE;
        end
        if (rst) begin
            write_reg <= {AW{1'b0}};
            read_reg  <= {AW{1'b0}};
            count_reg <= {CW{1'b0}};
            ready_reg <= 1'b1;
            some_reg  <= 1'b0;
        end
    end
endmodule
`default_nettype wire
