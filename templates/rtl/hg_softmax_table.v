// hg_softmax_table: Word of a distance, from a separate memory for every lane.
//
// Purpose     Powers of e in a Softmax.
// Parameters  LANES  Elements of a beat.
//             D_W    Bits of a distance.
//             WORDS  Words. A distance is less than WORDS.
//             W      Bits of a word.
//             BLOCK  1: block RAM; 0: the tools choose.
//             FILE   File name stem. The stem followed by TAIL is the $readmemh file of the words.
//             TAIL   End of the file name.
// Latency     2 cycles, advancing on en: a registered read and an output register, as in block RAM.
// Contract    Exact.
`default_nettype none
module hg_softmax_table #(
    parameter integer LANES = 2,
    parameter integer D_W   = 7,
    parameter integer WORDS = 101,
    parameter integer W     = 32,
    parameter integer BLOCK = 0,
    parameter         FILE  = "",
    parameter         TAIL  = ".mem"
) (
    input  wire                 clk,
    input  wire                 en,
    input  wire [LANES*D_W-1:0] distance,
    output wire [LANES*W-1:0]   word
);
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : lane
            wire [D_W-1:0] place = distance[i*D_W +: D_W];
            reg  [W-1:0]   value_reg, held_reg;
            if (BLOCK != 0) begin : block
                (* rom_style = "block" *) reg [W-1:0] rom [0:WORDS-1];
                initial if (FILE != "") $readmemh({FILE, TAIL}, rom);
                always @(posedge clk) if (en) value_reg <= rom[place];
            end else begin : any
                (* rom_style = "auto" *) reg [W-1:0] rom [0:WORDS-1];
                initial if (FILE != "") $readmemh({FILE, TAIL}, rom);
                always @(posedge clk) if (en) value_reg <= rom[place];
            end
            always @(posedge clk) if (en) held_reg <= value_reg;
            assign word[i*W +: W] = held_reg;
        end
    endgenerate
endmodule
`default_nettype wire
