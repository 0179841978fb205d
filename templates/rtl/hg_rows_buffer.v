// hg_rows_buffer: Stores rows of a stream until a statistic of the whole row is known.
//
// Purpose     Middle part of units on rows. The caller computes the statistic as the beats pass by. Every
//             beat of the row leaves with it.
// Parameters  WIDTH   Bits of a beat.
//             BLOCK   Beats of a row.
//             STAT_W  Bits of the statistic.
//             LAG     Cycles from accepting the last beat of a row until `stat` is the row's statistic, at
//                     least 1. They pass even while the output stalls.
// Latency     Beat 0 of a row is read 1 + LAG cycles after its last beat was accepted, or directly after
//             the last beat of the previous row. Beats are read one per cycle and are on m_data 1 cycle
//             after the read. Reading continues in cycles with `en`; otherwise it stalls. Beats of row r+2
//             are accepted from the cycle after the last read of row r. Beats of the first two rows are
//             accepted at once. Signal s_ready depends on registers only.
// Contract    take, first, last: a beat is accepted in this cycle; it is the first, last of its row. issue:
//             a beat is read in this cycle. Beats leave unchanged and in order. The memory holds 2 * BLOCK
//             beats.
`default_nettype none
module hg_rows_buffer #(
    parameter integer WIDTH  = 8,
    parameter integer BLOCK  = 4,
    parameter integer STAT_W = 8,
    parameter integer LAG    = 1
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [WIDTH-1:0]  s_data,
    input  wire              s_valid,
    output wire              s_ready,
    output wire              take,
    output wire              first,
    output wire              last,
    input  wire [STAT_W-1:0] stat,
    input  wire              en,
    output wire              issue,
    output wire [WIDTH-1:0]  m_data,
    output wire [STAT_W-1:0] m_stat,
    output wire              m_valid
);
    localparam integer WORDS = 2 * BLOCK;
    localparam integer AW    = $clog2(WORDS);
    localparam integer SECOND = BLOCK, MIDDLE = BLOCK - 1, FINAL = WORDS - 1;

    (* ram_style = "auto" *) reg [WIDTH-1:0] mem [0:WORDS-1];
    reg [WIDTH-1:0]  data_reg;
    reg [STAT_W-1:0] stat0_reg, stat1_reg, stat_reg;
    reg              valid_reg;
    // Per half: its beats are being written or read; it is complete, with its statistic.
    reg [1:0]        busy_reg, full_reg;
    reg              into_reg, done_reg, from_reg;  // the half that is written, completed, read
    reg [LAG-1:0]    wait_reg;
    reg [AW-1:0]     write_reg, read_reg;

    wire block_in  = take && last;
    wire complete  = wait_reg[LAG-1];
    wire block_out = issue && (read_reg == (from_reg ? FINAL[AW-1:0] : MIDDLE[AW-1:0]));
    wire [LAG:0] waiting = {wait_reg, block_in};

    assign s_ready = !busy_reg[into_reg];
    assign take    = s_valid && s_ready;
    assign first   = write_reg == (into_reg ? SECOND[AW-1:0] : {AW{1'b0}});
    assign last    = write_reg == (into_reg ? FINAL[AW-1:0] : MIDDLE[AW-1:0]);
    assign issue   = en && full_reg[from_reg];
    assign m_data  = data_reg;
    assign m_stat  = stat_reg;
    assign m_valid = valid_reg;

    always @(posedge clk) begin
        if (take) mem[write_reg] <= s_data;
        if (en) begin
            data_reg <= mem[read_reg];
            stat_reg <= from_reg ? stat1_reg : stat0_reg;
        end
        if (complete && !done_reg) stat0_reg <= stat;
        if (complete && done_reg)  stat1_reg <= stat;
    end

    always @(posedge clk) begin
        wait_reg <= waiting[LAG-1:0];
        if (take) write_reg <= (write_reg == FINAL[AW-1:0]) ? {AW{1'b0}} : write_reg + 1'b1;
        if (issue) read_reg <= (read_reg == FINAL[AW-1:0]) ? {AW{1'b0}} : read_reg + 1'b1;
        if (block_in) begin
            into_reg <= !into_reg;
            busy_reg[into_reg] <= 1'b1;
        end
        if (complete) begin
            done_reg <= !done_reg;
            full_reg[done_reg] <= 1'b1;
        end
        if (block_out) begin
            from_reg <= !from_reg;
            busy_reg[from_reg] <= 1'b0;
            full_reg[from_reg] <= 1'b0;
        end
        if (en) valid_reg <= full_reg[from_reg];
        if (rst) begin
            wait_reg  <= {LAG{1'b0}};
            write_reg <= {AW{1'b0}};
            read_reg  <= {AW{1'b0}};
            into_reg  <= 1'b0;
            done_reg  <= 1'b0;
            from_reg  <= 1'b0;
            busy_reg  <= 2'b00;
            full_reg  <= 2'b00;
            valid_reg <= 1'b0;
        end
    end
    wire unused = &{1'b0, waiting};
endmodule
`default_nettype wire
