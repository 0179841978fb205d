// hg_unfold_store: Memories of hg_unfold.
//
// Purpose     ROWS * SPAN memories. Word x of row r (counted over all images) is in slot r mod ROWS, column
//             bank x mod BANKS. With one bank, it is in all memories of the slot.
// Parameters  WORD           Bits of a word.
//             FOLDS          Words of a pixel.
//             ROWS, COLUMNS  As in hg_unfold.
//             SPAN           Memories of a slot.
//             BANKS          Column banks: SPAN, or 1 if every memory has a copy of all columns.
//             BANK           Words of a memory.
//             ADDR_W         Bits of an address.
// Latency     An accepted word can be read from the next edge on. After 1 enabled cycle, `stored` holds the
//             word of each memory, at the position of its column, slot by slot.
// Contract    A word is never read at the edge at which its address is written, unless the read value is
//             unused.
`default_nettype none
module hg_unfold_store #(
    parameter integer WORD    = 8,
    parameter integer FOLDS   = 2,
    parameter integer ROWS    = 3,
    parameter integer COLUMNS = 5,
    parameter integer SPAN    = 3,
    parameter integer BANKS   = 3,
    parameter integer BANK    = 4,
    parameter integer ADDR_W  = 2
) (
    input  wire                      clk,
    input  wire                      rst,
    input  wire                      take,
    input  wire [WORD-1:0]           s_data,
    input  wire                      en,
    input  wire [SPAN*ADDR_W-1:0]    places,
    output wire [ROWS*SPAN*WORD-1:0] stored
);
    localparam integer AW = ADDR_W;
    localparam integer HB = (ROWS <= 1) ? 1 : $clog2(ROWS);
    localparam integer WB = (BANKS <= 1) ? 1 : $clog2(BANKS);
    localparam integer FB = (FOLDS <= 1) ? 1 : $clog2(FOLDS);

    // The last word of a slot.
    localparam integer A_LAST = BANK - 1, B_LAST = (COLUMNS - 1) % BANKS;
    localparam integer A_BACK = 1 - FOLDS, A_UP = 1;
    localparam [HB-1:0] H_TOP = ROWS[HB-1:0] - 1'b1;
    localparam [WB-1:0] W_TOP = BANKS[WB-1:0] - 1'b1;
    localparam [FB-1:0] F_TOP = FOLDS[FB-1:0] - 1'b1;
    reg  [HB-1:0] slot_reg;
    reg  [WB-1:0] bank_reg;
    reg  [FB-1:0] fold_reg;
    reg  [AW-1:0] write_reg;
    wire          pixel  = fold_reg == F_TOP;
    wire          around = pixel && bank_reg == W_TOP;
    wire          full   = pixel && bank_reg == B_LAST[WB-1:0] && write_reg == A_LAST[AW-1:0];
    always @(posedge clk) begin
        if (take) begin
            fold_reg  <= pixel ? {FB{1'b0}} : fold_reg + 1'b1;
            write_reg <= full ? {AW{1'b0}}
                       : write_reg + ((pixel && !around) ? A_BACK[AW-1:0] : A_UP[AW-1:0]);
            if (pixel) bank_reg <= (full || around) ? {WB{1'b0}} : bank_reg + 1'b1;
            if (full)  slot_reg <= (slot_reg == H_TOP) ? {HB{1'b0}} : slot_reg + 1'b1;
        end
        if (rst) begin
            fold_reg  <= {FB{1'b0}};
            write_reg <= {AW{1'b0}};
            bank_reg  <= {WB{1'b0}};
            slot_reg  <= {HB{1'b0}};
        end
    end

    genvar h, w;
    generate
        for (h = 0; h < ROWS; h = h + 1) begin : slot
            for (w = 0; w < SPAN; w = w + 1) begin : bank
                localparam integer H = h, W = w;
                wire           write = take && slot_reg == H[HB-1:0] && (BANKS == 1 || bank_reg == W[WB-1:0]);
                (* no_rw_check *) reg [WORD-1:0] mem [0:BANK-1];
                reg [WORD-1:0] word_reg;
                always @(posedge clk) begin
                    if (write) mem[write_reg] <= s_data;
                    if (en)    word_reg       <= mem[places[w*AW +: AW]];
                end
                assign stored[(h*SPAN+w)*WORD +: WORD] = word_reg;
            end
        end
    endgenerate
endmodule
`default_nettype wire
