// hg_load: Words of a memory received over the load bus.
//
// Purpose     One unit's end of the bus of hg_axil_weights. It assembles words of any width from pieces of
//             32 bits and writes them to hg_weights, word 0 first.
// Parameters  UNIT   Number of the unit, below 65536. -1: nothing is ever written, and there is no logic.
//             WORDS  Words of the memory.
//             WIDTH  Bits of a word: ceil(WIDTH / 32) pieces, the low bits first. Bits of the last piece
//                    beyond the word are ignored.
// Latency     1 cycle from a word's last piece to `we`.
// Contract    The bus is load = {valid, start, unit[15:0], data[31:0]}. `start` with this unit's number
//             begins at word 0, and each `valid` with it brings a piece. Nothing is written before a start,
//             after the last word until the next start, or while rst is 1. Initial values protect the
//             file's contents from power-up to the first reset.
`default_nettype none
module hg_load #(
    parameter integer UNIT  = 0,
    parameter integer WORDS = 4,
    parameter integer WIDTH = 40
) (
    input  wire                                          clk,
    input  wire                                          rst,
    input  wire [49:0]                                   load,
    output wire                                          we,
    output wire [((WORDS <= 1) ? 1 : $clog2(WORDS))-1:0] waddr,
    output wire [WIDTH-1:0]                              wdata
);
    localparam integer AW     = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam integer PIECES = (WIDTH + 31) / 32;
    localparam integer PW     = (PIECES <= 1) ? 1 : $clog2(PIECES);
    localparam [AW-1:0] LAST_WORD  = WORDS[AW-1:0] - 1'b1;
    localparam [PW-1:0] LAST_PIECE = PIECES[PW-1:0] - 1'b1;

    generate
        if (UNIT >= 0) begin : loader
            wire mine  = load[47:32] == UNIT[15:0];
            wire start = load[48] && mine;

            reg                  live_reg, we_reg;
            reg [PW-1:0]         piece_reg;
            reg [AW-1:0]         next_reg, waddr_reg;
            reg [32*PIECES-1:0]  word_reg;
            wire                 take = load[49] && mine && live_reg;
            wire                 full = take && piece_reg == LAST_PIECE;
            wire [32*PIECES+31:0] shifted = {load[31:0], word_reg};
            initial {live_reg, we_reg} = 2'b00;

            always @(posedge clk) begin
                we_reg <= full;
                if (take) begin
                    word_reg  <= shifted[32*PIECES+31:32];
                    piece_reg <= full ? {PW{1'b0}} : piece_reg + 1'b1;
                end
                if (full) begin
                    waddr_reg <= next_reg;
                    next_reg  <= next_reg + 1'b1;
                    if (next_reg == LAST_WORD) live_reg <= 1'b0;
                end
                if (start) begin
                    live_reg  <= 1'b1;
                    piece_reg <= {PW{1'b0}};
                    next_reg  <= {AW{1'b0}};
                end
                if (rst) begin
                    live_reg <= 1'b0;
                    we_reg   <= 1'b0;
                end
            end

            assign we    = we_reg && !rst;
            assign waddr = waddr_reg;
            assign wdata = word_reg[WIDTH-1:0];
            wire unused = &{1'b0, shifted[31:0], word_reg};
        end else begin : fixed
            assign we    = 1'b0;
            assign waddr = {AW{1'b0}};
            assign wdata = {WIDTH{1'b0}};
            wire unused = &{1'b0, clk, rst, load, LAST_WORD, LAST_PIECE};
        end
    endgenerate
endmodule
`default_nettype wire
