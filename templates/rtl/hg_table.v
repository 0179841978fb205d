// hg_table: Integer function by look-up.
//
// Purpose     code = f(x), per channel, from a memory. The memory holds all values, or the values in a
//             window outside of which f is constant, or one half of a window with point symmetry.
// Parameters  LANES      Elements of a beat.
//             FOLDS      Sets of channel parameters; beat i uses set i mod FOLDS.
//             IN_W       Bits of x.
//             IN_SIGNED  1: x is two's complement; 0: unsigned.
//             OUT_W      Bits of the code.
//             MODE       0: index = low ADDR_W bits of x. 1: index = clamp(x - center, 0, 2^ADDR_W - 1). 2:
//                        as 1 where x >= center. Below it, code = SUM - value, and the index is min(center
//                        - x - 1, 2^ADDR_W - 1). 3: as 2, but with min(center - x, 2^ADDR_W - 1).
//             ADDR_W     Bits of the index, in mode 0 at most IN_W.
//             C_W        Bits of a center (two's complement). 0: center = 0 for all channels, without a
//                        memory for it.
//             SUM        Constant of modes 2 and 3.
//             FILE       File name stem. FILE_<lane>.mem (four digits) holds FOLDS * 2^ADDR_W codes.
//                        FILE.mem (if C_W > 0) holds FOLDS words of LANES * C_W bits.
// Latency     2 cycles in mode 0, 4 in mode 1, otherwise 5. One beat per cycle.
// Contract    Exact. The memory has a registered read and an output register, as in block RAM.
`default_nettype none
module hg_table #(
    parameter integer     LANES     = 2,
    parameter integer     FOLDS     = 2,
    parameter integer     IN_W      = 8,
    parameter integer     IN_SIGNED = 1,
    parameter integer     OUT_W     = 3,
    parameter integer     MODE      = 3,
    parameter integer     ADDR_W    = 6,
    parameter integer     C_W       = 4,
    parameter [OUT_W-1:0] SUM       = 0,
    parameter             FILE      = ""
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*IN_W-1:0]  s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer FW = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
    localparam integer WORDS  = FOLDS << ADDR_W;
    localparam integer AW     = $clog2(WORDS);
    localparam integer STAGES = (MODE == 0) ? 2 : (MODE == 1) ? 4 : 5;
    localparam integer CENTER_W = (C_W == 0) ? 1 : C_W;
    localparam integer D0_W   = (C_W > IN_W) ? C_W : IN_W;
    localparam integer D_W    = ((D0_W > ADDR_W) ? D0_W : ADDR_W) + 2;   // x - center
    localparam [0:0]   UP     = MODE == 3;

    reg  [STAGES-1:0] valid_reg;
    wire [STAGES:0]   valid_in = {valid_reg, s_valid};
    wire              en = m_ready || !valid_reg[STAGES-1];
    wire [FW-1:0] fold, fold_next;
    hg_index #(.N(FOLDS)) turn (.clk(clk), .rst(rst), .step(s_valid && en), .index(fold), .next(fold_next));

    assign s_ready = en;
    assign m_valid = valid_reg[STAGES-1];

    always @(posedge clk) begin
        if (en) valid_reg <= valid_in[STAGES-1:0];
        if (rst) valid_reg <= {STAGES{1'b0}};
    end

    wire [FW-1:0]        read_fold;   // channel set of the beat that is looked up
    wire [LANES*CENTER_W-1:0] center;
    genvar g;
    generate
        if (MODE == 0) begin : at_once
            assign read_fold = fold;
        end else begin : delayed
            reg [2*FW-1:0] folds_reg;
            always @(posedge clk) if (en) folds_reg <= {folds_reg[FW-1:0], fold};
            assign read_fold = folds_reg[2*FW-1:FW];
        end
        if (MODE == 0 || C_W == 0) begin : zero
            assign center = {LANES*CENTER_W{1'b0}};
        end else begin : word
            (* rom_style = "auto" *) reg [LANES*C_W-1:0] centers [0:FOLDS-1];
            initial if (FILE != "") $readmemh({FILE, ".mem"}, centers);
            reg [LANES*C_W-1:0] center_reg;
            always @(posedge clk) if ((s_valid && en) || rst) center_reg <= centers[fold_next];
            assign center = center_reg;
        end
        for (g = 0; g < LANES; g = g + 1) begin : lane
            localparam integer D3 = 48 + (g / 1000) % 10;
            localparam integer D2 = 48 + (g / 100) % 10;
            localparam integer D1 = 48 + (g / 10) % 10;
            localparam integer D0 = 48 + g % 10;
            (* rom_style = "auto" *) reg [OUT_W-1:0] rom [0:WORDS-1];
            initial if (FILE != "") $readmemh({FILE, "_", D3[7:0], D2[7:0], D1[7:0], D0[7:0], ".mem"}, rom);
            wire [IN_W-1:0]      x = s_data[g*IN_W +: IN_W];
            wire [CENTER_W-1:0]  c = center[g*CENTER_W +: CENTER_W];
            wire [ADDR_W-1:0]    index;
            wire [FW+ADDR_W-1:0] address = {read_fold, index};
            reg  [OUT_W-1:0]     value_reg, held_reg;
            if (MODE == 0) begin : direct
                assign index = x[ADDR_W-1:0];
            end else begin : window
                reg  [D_W-1:0]    distance_reg;
                reg  [ADDR_W-1:0] index_reg;
                reg  [2:0]        below_reg;
                wire              below = distance_reg[D_W-1];
                wire [D_W-1:0]    flip  = (MODE >= 2) ? distance_reg ^ {D_W{below}}
                                                      : distance_reg & {D_W{!below}};
                wire [ADDR_W:0]   far   = flip[ADDR_W:0] + {{ADDR_W{1'b0}}, UP && below};
                wire              over  = far[ADDR_W] || |flip[D_W-1:ADDR_W];
                always @(posedge clk) if (en) begin
                    distance_reg <= {{D_W-IN_W{(IN_SIGNED != 0) && x[IN_W-1]}}, x}
                                  - {{D_W-CENTER_W{c[CENTER_W-1]}}, c};
                    index_reg    <= far[ADDR_W-1:0] | {ADDR_W{over}};
                    below_reg    <= {below_reg[1:0], below};
                end
                assign index = index_reg;
                wire unused_window = &{1'b0, below_reg};
            end
            always @(posedge clk) if (en) begin
                value_reg <= rom[address[AW-1:0]];
                held_reg  <= value_reg;
            end
            if (MODE >= 2) begin : mirror
                reg [OUT_W-1:0] code_reg;
                always @(posedge clk) if (en)
                    code_reg <= window.below_reg[2] ? SUM - held_reg : held_reg;
                assign m_data[g*OUT_W +: OUT_W] = code_reg;
            end else begin : plain
                assign m_data[g*OUT_W +: OUT_W] = held_reg;
            end
            wire unused_lane = &{1'b0, address, x, c};
        end
    endgenerate
    wire unused = &{1'b0, valid_in, fold_next};
endmodule
`default_nettype wire
