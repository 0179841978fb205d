// hg_softmax_rows: stores rows of codes and sends the distance of every code to the largest of its row.
//
// Purpose     the first pass of a Softmax, with room for two rows.
// Parameters  LANES      elements of a beat
//             BEATS      beats of a row
//             IN_W       bits of a code
//             IN_SIGNED  1: codes are two's complement, 0: unsigned
//             LAST       largest distance that is sent; what is farther away has it as well
//             D_W        bits of a distance, ceil(log2(LAST + 1)), 1 or more
// Latency     beat 0 of a row is read 1 cycle after its last beat was taken or right behind the last beat
//             of the row before, one beat an enabled cycle; its distances are there 3 enabled cycles
//             after the read. Beats of row b+2 are taken from the cycle after the last read of row b.
// Contract    the side of m advances on en; s_ready depends on registers only. The beats of a row come in
//             consecutive enabled cycles; m_first and m_last mark the first and the last of them.
`default_nettype none
module hg_softmax_rows #(
    parameter integer LANES     = 2,
    parameter integer BEATS     = 3,
    parameter integer IN_W      = 8,
    parameter integer IN_SIGNED = 1,
    parameter integer LAST      = 100,
    parameter integer D_W       = 7
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [LANES*IN_W-1:0] s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    input  wire                  en,
    output wire [LANES*D_W-1:0]  m_data,
    output wire                  m_valid,
    output wire                  m_first,
    output wire                  m_last
);
    localparam integer WORDS  = 2 * BEATS;
    localparam integer AW     = $clog2(WORDS);
    localparam integer SECOND = BEATS;
    localparam integer MIDDLE = BEATS - 1;
    localparam integer FINAL  = WORDS - 1;
    localparam [IN_W-1:0] FAR = LAST[IN_W-1:0];

    function greater(input [IN_W-1:0] a, input [IN_W-1:0] b);
        greater = $signed({(IN_SIGNED != 0) && a[IN_W-1], a})
                > $signed({(IN_SIGNED != 0) && b[IN_W-1], b});
    endfunction

    (* ram_style = "auto" *) reg [LANES*IN_W-1:0] mem [0:WORDS-1];
    reg [1:0]    full_reg;               // of both halves of the memory
    reg          into_reg, from_reg;     // the half that is written, read
    reg [AW-1:0] write_reg, read_reg;

    wire take    = s_valid && s_ready;
    wire row_in  = take && write_reg == (into_reg ? FINAL[AW-1:0] : MIDDLE[AW-1:0]);
    wire starts  = write_reg == (into_reg ? SECOND[AW-1:0] : {AW{1'b0}});
    wire issue   = en && full_reg[from_reg];
    wire ends    = read_reg == (from_reg ? FINAL[AW-1:0] : MIDDLE[AW-1:0]);
    wire begins  = read_reg == (from_reg ? SECOND[AW-1:0] : {AW{1'b0}});
    assign s_ready = !full_reg[into_reg];

    // The largest code of a beat, then of its row. That of a row is kept until the row four behind it
    // comes: of the rows between, two are in the memory, and one may wait behind it.
    reg [IN_W-1:0] top_reg;
    reg [IN_W-1:0] best_reg [0:3];
    reg [1:0]      row_reg, top_row_reg, out_reg, out1_reg;
    reg            top_valid_reg, top_first_reg;
    reg [LANES*IN_W-1:0] top;  // a tree: the largest of more and more elements is in the first of them
    integer g, apart;
    always @* begin
        top = s_data;
        for (apart = 1; apart < LANES; apart = 2 * apart)
            for (g = 0; g + apart < LANES; g = g + 2 * apart)
                if (greater(top[(g+apart)*IN_W +: IN_W], top[g*IN_W +: IN_W]))
                    top[g*IN_W +: IN_W] = top[(g+apart)*IN_W +: IN_W];
    end
    always @(posedge clk) begin
        top_reg       <= top[IN_W-1:0];
        top_first_reg <= starts;
        top_row_reg   <= row_reg;
        if (top_valid_reg && (top_first_reg || greater(top_reg, best_reg[top_row_reg])))
            best_reg[top_row_reg] <= top_reg;
        if (take) mem[write_reg] <= s_data;
    end

    // Reading: the word, then it and the largest of its row, then the distances.
    reg [LANES*IN_W-1:0] data_reg, data2_reg;
    reg [IN_W-1:0]       max_reg;
    reg [2:0]            valid_reg, first_reg, last_reg;
    always @(posedge clk) if (en) begin
        data_reg  <= mem[read_reg];
        data2_reg <= data_reg;
        out1_reg  <= out_reg;
        first_reg <= {first_reg[1:0], begins};
        last_reg  <= {last_reg[1:0], ends};
        if (first_reg[0]) max_reg <= best_reg[out1_reg];
    end
    assign m_valid = valid_reg[2];
    assign m_first = first_reg[2];
    assign m_last  = last_reg[2];
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : lane
            wire [IN_W-1:0] distance = max_reg - data2_reg[i*IN_W +: IN_W];
            wire [D_W-1:0]  near;
            reg  [D_W-1:0]  distance_reg;
            if (LAST == (1 << IN_W) - 1) begin : all
                assign near = distance[D_W-1:0];
            end else begin : some
                assign near = (distance > FAR) ? FAR[D_W-1:0] : distance[D_W-1:0];
            end
            always @(posedge clk) if (en) distance_reg <= near;
            assign m_data[i*D_W +: D_W] = distance_reg;
        end
    endgenerate

    always @(posedge clk) begin
        top_valid_reg <= take;
        if (take) write_reg <= (write_reg == FINAL[AW-1:0]) ? {AW{1'b0}} : write_reg + 1'b1;
        if (row_in) begin
            into_reg <= !into_reg;
            full_reg[into_reg] <= 1'b1;
            row_reg <= row_reg + 1'b1;
        end
        if (issue) read_reg <= (read_reg == FINAL[AW-1:0]) ? {AW{1'b0}} : read_reg + 1'b1;
        if (issue && ends) begin
            from_reg <= !from_reg;
            full_reg[from_reg] <= 1'b0;
            out_reg <= out_reg + 1'b1;
        end
        if (en) valid_reg <= {valid_reg[1:0], full_reg[from_reg]};
        if (rst) begin
            write_reg <= {AW{1'b0}};
            read_reg  <= {AW{1'b0}};
            into_reg  <= 1'b0;
            from_reg  <= 1'b0;
            full_reg  <= 2'b00;
            row_reg   <= 2'b00;
            out_reg   <= 2'b00;
            valid_reg <= 3'b000;
            top_valid_reg <= 1'b0;
        end
    end
endmodule
`default_nettype wire
