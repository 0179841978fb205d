// hg_weight_words: The words of weights of a unit, read in order and optionally written over the load bus.
//
// Purpose     A memory, hg_weights, and its end of the load bus, hg_load.
// Parameters  FILE, WORDS, WIDTH, STYLE  See hg_weights.
//             LOAD_UNIT  Number of the unit on the load bus, see hg_load. -1: the bus is ignored.
// Latency     1 cycle, as hg_weights.
// Contract    As hg_weights. Words that hg_load receives replace words of the file.
`default_nettype none
module hg_weight_words #(
    parameter         FILE      = "",
    parameter integer WORDS     = 4,
    parameter integer WIDTH     = 8,
    parameter integer STYLE     = 0,
    parameter integer LOAD_UNIT = -1
) (
    input  wire                                          clk,
    input  wire                                          rst,
    input  wire [49:0]                                   load,
    input  wire                                          en,
    input  wire                                          step,
    input  wire [((WORDS <= 1) ? 1 : $clog2(WORDS))-1:0] addr,
    output wire [WIDTH-1:0]                              data
);
    wire                                          we;
    wire [((WORDS <= 1) ? 1 : $clog2(WORDS))-1:0] waddr;
    wire [WIDTH-1:0]                              wdata;
    hg_load #(.UNIT(LOAD_UNIT), .WORDS(WORDS), .WIDTH(WIDTH)) loader (
        .clk(clk), .rst(rst), .load(load), .we(we), .waddr(waddr), .wdata(wdata)
    );
    hg_weights #(
        .FILE(FILE), .WORDS(WORDS), .WIDTH(WIDTH), .STYLE(STYLE),
        .LOADABLE((LOAD_UNIT >= 0) ? 1 : 0)
    ) memory (
        .clk(clk), .rst(rst), .en(en), .step(step), .addr(addr), .data(data),
        .we(we), .waddr(waddr), .wdata(wdata)
    );
endmodule
`default_nettype wire
