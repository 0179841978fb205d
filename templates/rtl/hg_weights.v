// hg_weights: Memory of weights.
//
// Purpose     Words of a weight file, optionally rewritten at run time.
// Parameters  FILE      $readmemh file of WORDS words.
//             WORDS     Words.
//             WIDTH     Bits of a word.
//             STYLE     0: the tools choose. 1: LUTs (LUTRAM if LOADABLE). 2: block RAM. 3: LUTs in
//                       separate modules, see hg_weights_table; as 1 if LOADABLE.
//             LOADABLE  1: the write port works; 0: it is ignored.
// Latency     1 cycle: `data` is word number `addr` of the last edge with `en`.
// Contract    Input addr counts 0, 1, ... WORDS - 1 and restarts; it starts from `rst` and advances with
//             every `step`. The separate modules of STYLE 3 keep it in registers of their own. waddr <
//             WORDS. A word that is written and read at the same edge returns its old value.
`default_nettype none
module hg_weights #(
    parameter         FILE     = "",
    parameter integer WORDS    = 4,
    parameter integer WIDTH    = 8,
    parameter integer STYLE    = 0,
    parameter integer LOADABLE = 0
) (
    input  wire                                          clk,
    input  wire                                          rst,
    input  wire                                          en,
    input  wire                                          step,
    input  wire [((WORDS <= 1) ? 1 : $clog2(WORDS))-1:0] addr,
    output wire [WIDTH-1:0]                              data,
    input  wire                                          we,
    input  wire [((WORDS <= 1) ? 1 : $clog2(WORDS))-1:0] waddr,
    input  wire [WIDTH-1:0]                              wdata
);
    // Columns per hg_weights_table.
    localparam integer SHARE = 256;
    wire write = (LOADABLE != 0) && we;
    genvar g;
    generate
        if (STYLE == 3 && LOADABLE == 0) begin : apart
            for (g = 0; g < WIDTH; g = g + SHARE) begin : columns
                localparam integer COUNT = (WIDTH - g < SHARE) ? WIDTH - g : SHARE;
                hg_weights_table #(.FILE(FILE), .WORDS(WORDS), .WIDTH(WIDTH), .FROM(g), .COUNT(COUNT)) share (
                    .clk(clk), .rst(rst), .en(en), .step(step), .data(data[g +: COUNT])
                );
            end
        end else if ((STYLE == 1 || STYLE == 3) && LOADABLE != 0) begin : distributed
            reg [WIDTH-1:0] data_reg;
            assign data = data_reg;
            (* ram_style = "distributed" *) reg [WIDTH-1:0] mem [0:WORDS-1];
            initial if (FILE != "") $readmemh(FILE, mem);
            always @(posedge clk) begin
                if (write) mem[waddr] <= wdata;
                if (en)    data_reg   <= mem[addr];
            end
        end else if (STYLE == 1) begin : tables
            reg [WIDTH-1:0] data_reg;
            assign data = data_reg;
            (* ROM_STYLE = "distributed", syn_romstyle = "logic" *) reg [WIDTH-1:0] mem [0:WORDS-1];
            initial if (FILE != "") $readmemh(FILE, mem);
            always @(posedge clk) if (en) data_reg <= mem[addr];
        end else if (STYLE == 2) begin : block
            reg [WIDTH-1:0] data_reg;
            assign data = data_reg;
            (* rom_style = "block", ram_style = "block" *) reg [WIDTH-1:0] mem [0:WORDS-1];
            initial if (FILE != "") $readmemh(FILE, mem);
            always @(posedge clk) begin
                if (write) mem[waddr] <= wdata;
                if (en)    data_reg   <= mem[addr];
            end
        end else begin : any
            reg [WIDTH-1:0] data_reg;
            assign data = data_reg;
            reg [WIDTH-1:0] mem [0:WORDS-1];
            initial if (FILE != "") $readmemh(FILE, mem);
            always @(posedge clk) begin
                if (write) mem[waddr] <= wdata;
                if (en)    data_reg   <= mem[addr];
            end
        end
    endgenerate
    wire unused = &{1'b0, rst, step, addr, write, waddr, wdata};
endmodule
`default_nettype wire
