// hg_threshold: Monotone integer function by binary search over thresholds.
//
// Purpose     code = OFFSET + number of thresholds T[k] with x >= T[k], per channel: the exact function of
//             any monotone quantizer.
// Parameters  LANES      Elements of a beat.
//             FOLDS      Sets of channel parameters; beat i uses set i mod FOLDS.
//             IN_W       Bits of x.
//             IN_SIGNED  1: x is two's complement; 0: unsigned.
//             BITS       Comparisons. A channel has 2^BITS - 1 thresholds, ascending.
//             OUT_W      Bits of the code (low bits of the sum).
//             OFFSET     Code below the first threshold.
//             FALLING    1: a set top bit of a threshold word means that the channel falls. Its thresholds
//                        descend, and the comparison is x < T[k]. 0: there is no such bit.
//             FILE       File name stem. FILE_<lane>_<level>.mem (four digits, two digits) holds FOLDS *
//                        2^level words: T of search node n of set f at f * 2^level + n.
//             EVERY      1: words of memories of more than 64 words pass two more registers: one that block
//                        RAMs have at their outputs, and one on the way from there.
// Latency     BITS + 1 cycles, plus one for each level except the first of more than 64 words. With EVERY =
//             1, plus two for each level of more than 64 words. One beat per cycle.
// Contract    Thresholds are two's complement of IN_W + 1 bits (IN_W + 2 for unsigned x), so that "always"
//             and "never" can be expressed. Each level is a memory with a registered read, in block or
//             distributed RAM. Where the memory needs several LUTs in series, the comparison before it has
//             a register.
`default_nettype none
module hg_threshold #(
    parameter integer LANES     = 2,
    parameter integer FOLDS     = 2,
    parameter integer IN_W      = 8,
    parameter integer IN_SIGNED = 1,
    parameter integer BITS      = 2,
    parameter integer OUT_W     = 3,
    parameter integer OFFSET    = 0,
    parameter integer FALLING   = 0,
    parameter         FILE      = "",
    parameter integer EVERY     = 2
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
    localparam integer T_W  = IN_W + ((IN_SIGNED != 0) ? 1 : 2);
    localparam integer W_W  = T_W + FALLING;

    // Registers before the memory of a level, or before the code.
    function integer depth(input integer level);
        integer k;
        begin
            depth = level;
            for (k = 1; k <= level; k = k + 1) if (k < BITS && (FOLDS << k) > 64) depth = depth + 1;
            for (k = 0; k < level; k = k + 1) if (EVERY == 1 && (FOLDS << k) > 64) depth = depth + 2;
        end
    endfunction
    localparam integer LAST = depth(BITS);

    reg [LAST:0]    valid_reg;
    wire            en = m_ready || !valid_reg[LAST];
    wire [LAST+1:0] valid_in = {valid_reg, s_valid};

    assign s_ready = en;
    assign m_valid = valid_reg[LAST];

    always @(posedge clk) begin
        if (en) valid_reg <= valid_in[LAST:0];
        if (rst) valid_reg <= {LAST+1{1'b0}};
    end

    wire [FW-1:0] fold, unused_next;
    hg_index #(.N(FOLDS)) turn (.clk(clk), .rst(rst), .step(s_valid && en), .index(fold), .next(unused_next));

    // The channel set travels with the beat.
    reg  [LAST*FW-1:0]     folds_reg;
    wire [(LAST+1)*FW-1:0] folds = {folds_reg, fold};
    always @(posedge clk) if (en) folds_reg <= folds[LAST*FW-1:0];

    genvar g, l;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            localparam integer D3 = 48 + (g / 1000) % 10;
            localparam integer D2 = 48 + (g / 100) % 10;
            localparam integer D1 = 48 + (g / 10) % 10;
            localparam integer D0 = 48 + g % 10;
            for (l = 0; l < BITS; l = l + 1) begin : level
                localparam [7:0] L1 = 8'd48 + (l / 10);
                localparam [7:0] L0 = 8'd48 + (l % 10);
                localparam integer WORDS = FOLDS << l, AT = depth(l);
                localparam integer AW = (WORDS <= 1) ? 1 : $clog2(WORDS);
                (* rom_style = "auto" *) reg [W_W-1:0] rom [0:WORDS-1];
                initial if (FILE != "")
                    $readmemh({FILE, "_", D3[7:0], D2[7:0], D1[7:0], D0[7:0], "_", L1, L0, ".mem"}, rom);
                reg  [W_W-1:0]       word_reg;
                reg  [IN_W-1:0]      x_reg;
                reg  [BITS-1:0]      node_reg;   // comparisons so far, the first one in the top bit
                // Operands of the comparison.
                wire [W_W-1:0]       word;
                wire [IN_W-1:0]      held;
                wire [BITS-1:0]      way;
                wire [IN_W-1:0]      x;
                wire [BITS-1:0]      node;
                wire [FW+BITS-1:0]   address = ({{BITS{1'b0}}, folds[AT*FW +: FW]} << l)
                                             | {{FW{1'b0}}, node};
                wire                 reached =
                    $signed({{T_W-IN_W{(IN_SIGNED != 0) && held[IN_W-1]}}, held}) >= $signed(word[T_W-1:0]);
                wire                 found = reached ^ ((FALLING != 0) && word[W_W-1]);
                wire [BITS:0]        node_next = {way, found};
                if (l == 0) begin : first
                    assign x    = s_data[g*IN_W +: IN_W];
                    assign node = {BITS{1'b0}};
                end else if (WORDS <= 64) begin : next
                    assign x    = level[l-1].held;
                    assign node = level[l-1].node_next[BITS-1:0];
                end else begin : later
                    reg [IN_W-1:0] passed_reg;
                    reg [BITS-1:0] found_reg;
                    always @(posedge clk) if (en) begin
                        passed_reg <= level[l-1].held;
                        found_reg  <= level[l-1].node_next[BITS-1:0];
                    end
                    assign x    = passed_reg;
                    assign node = found_reg;
                end
                always @(posedge clk) if (en) begin
                    word_reg <= rom[address[AW-1:0]];
                    x_reg    <= x;
                    node_reg <= node;
                end
                if (EVERY == 1 && WORDS > 64) begin : distant
                    reg [W_W+IN_W+BITS-1:0] second_reg, third_reg;
                    always @(posedge clk) if (en) begin
                        second_reg <= {word_reg, x_reg, node_reg};
                        third_reg  <= second_reg;
                    end
                    assign {word, held, way} = third_reg;
                end else begin : near
                    assign {word, held, way} = {word_reg, x_reg, node_reg};
                end
                wire unused_level = &{1'b0, address, node_next[BITS]};
            end
            wire [OUT_W+BITS-1:0] count = {{OUT_W{1'b0}}, level[BITS-1].node_next[BITS-1:0]};
            reg  [OUT_W-1:0]      code_reg;
            always @(posedge clk) if (en) code_reg <= count[OUT_W-1:0] + OFFSET[OUT_W-1:0];
            assign m_data[g*OUT_W +: OUT_W] = code_reg;
            wire unused_lane = &{1'b0, count};
        end
    endgenerate
    wire unused = &{1'b0, unused_next, valid_in, folds};
endmodule
`default_nettype wire
