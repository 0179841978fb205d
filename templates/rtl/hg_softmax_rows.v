// hg_softmax_rows: Stores rows of codes and emits the distance of every code to the largest of its row.
//
// Purpose     First pass of a Softmax, with room for two rows.
// Parameters  LANES      Elements of a beat.
//             BEATS      Beats of a row.
//             IN_W       Bits of a code.
//             IN_SIGNED  1: codes are two's complement; 0: unsigned.
//             LAST       Largest emitted distance; larger ones are limited to it.
//             D_W        Bits of a distance, ceil(log2(LAST + 1)), at least 1.
//             MASKS      0, or words of FILE_mask.mem, one per beat, used cyclically. Each element has 2
//                        bits. 0: the element counts. 1: it is replaced by the least code. 2: it has
//                        distance LAST and is never the largest.
//             FILE       File name stem.
// Latency     Beat 0 of a row is read 1 cycle after its last beat was accepted, or directly after the last
//             beat of the previous row. One beat is read per enabled cycle. Its distances are valid 3
//             enabled cycles after the read. Beats of row b+2 are accepted from the cycle after the last
//             read of row b.
// Contract    The output side advances on en. Signal s_ready depends on registers only. The beats of a row
//             leave in consecutive enabled cycles; m_first and m_last mark the first and the last of them.
`default_nettype none
module hg_softmax_rows #(
    parameter integer LANES     = 2,
    parameter integer BEATS     = 3,
    parameter integer IN_W      = 8,
    parameter integer IN_SIGNED = 1,
    parameter integer LAST      = 100,
    parameter integer D_W       = 7,
    parameter integer MASKS     = 0,
    parameter         FILE      = ""
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

    // Codes after masking. Above them in the memory: flags of masked-out elements.
    localparam integer GONE_W = (MASKS != 0) ? LANES : 0;
    localparam integer ROW_W  = LANES * IN_W + GONE_W;
    wire [LANES*IN_W-1:0] code;
    wire [ROW_W-1:0]      word;
    (* ram_style = "auto" *) reg [ROW_W-1:0] mem [0:WORDS-1];
    reg [1:0]    full_reg;               // per half of the memory
    reg          into_reg, from_reg;     // the half that is written; read
    reg [AW-1:0] write_reg, read_reg;

    wire take    = s_valid && s_ready;
    wire row_in  = take && write_reg == (into_reg ? FINAL[AW-1:0] : MIDDLE[AW-1:0]);
    wire starts  = write_reg == (into_reg ? SECOND[AW-1:0] : {AW{1'b0}});
    wire issue   = en && full_reg[from_reg];
    wire ends    = read_reg == (from_reg ? FINAL[AW-1:0] : MIDDLE[AW-1:0]);
    wire begins  = read_reg == (from_reg ? SECOND[AW-1:0] : {AW{1'b0}});
    assign s_ready = !full_reg[into_reg];

    // The largest code of a beat, then of its row. The maximum of a row is kept until the fourth row after
    // it arrives. Of the rows between, two are in the memory, and one may wait after it.
    reg [IN_W-1:0] top_reg;
    reg [IN_W-1:0] best_reg [0:3];
    reg [1:0]      row_reg, top_row_reg, out_reg, out1_reg;
    reg            top_valid_reg, top_first_reg;
    reg [LANES*IN_W-1:0] top;  // a tree: the first element holds the maximum of ever more elements
    integer g, apart;
    always @* begin
        top = code;
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
        if (take) mem[write_reg] <= word;
    end

    // Reading: the word, then the word with the maximum of its row, then the distances.
    reg [ROW_W-1:0]      data_reg, data2_reg;
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
    wire [LANES-1:0] gone;
    generate
        if (MASKS != 0) begin : masked
            localparam integer MW    = (MASKS <= 1) ? 1 : $clog2(MASKS);
            localparam integer ENDS  = MASKS - 1;
            localparam [IN_W:0]   LEAST = {IN_SIGNED != 0, {IN_W{1'b0}}};
            (* rom_style = "auto" *) reg [2*LANES-1:0] masks [0:MASKS-1];
            initial if (FILE != "") $readmemh({FILE, "_mask.mem"}, masks);
            reg  [2*LANES-1:0] mask_reg;  // mask of the next beat
            reg  [MW-1:0]      beat_reg;
            wire [MW-1:0]      after = (beat_reg == ENDS[MW-1:0]) ? {MW{1'b0}} : beat_reg + 1'b1;
            wire [MW-1:0]      next  = rst ? {MW{1'b0}} : take ? after : beat_reg;
            wire [LANES-1:0]   away;
            always @(posedge clk) begin
                mask_reg <= masks[next];
                beat_reg <= next;
            end
            for (i = 0; i < LANES; i = i + 1) begin : lane
                wire there = mask_reg[2*i +: 2] == 2'd0;
                assign code[i*IN_W +: IN_W] = there ? s_data[i*IN_W +: IN_W] : LEAST[IN_W:1];
                assign away[i] = mask_reg[2*i+1];
            end
            assign word = {away, code};
            assign gone = data2_reg[ROW_W-1 -: LANES];
        end else begin : all_count
            assign code = s_data;
            assign word = s_data;
            assign gone = {LANES{1'b0}};
        end
        for (i = 0; i < LANES; i = i + 1) begin : lane
            wire [IN_W-1:0] distance = max_reg - data2_reg[i*IN_W +: IN_W];
            wire [D_W-1:0]  near;
            reg  [D_W-1:0]  distance_reg;
            wire [D_W+IN_W-1:0] padded = {{D_W{1'b0}}, distance};
            if (LAST >= (1 << IN_W) - 1) begin : all
                assign near = padded[D_W-1:0];
            end else begin : some
                assign near = (distance > FAR) ? FAR[D_W-1:0] : padded[D_W-1:0];
            end
            wire unused = &{1'b0, padded};
            always @(posedge clk) if (en) distance_reg <= gone[i] ? LAST[D_W-1:0] : near;
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
