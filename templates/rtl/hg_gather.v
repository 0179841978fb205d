// hg_gather: Stores fixed-length runs of a stream and emits their beats in the order of nested loops.
//
// Purpose     Transposing and repeating. For counters of all loops, the outermost slowest, emits beat
//             number sum(counter[d] * stride[d]) of the stored run ("block").
// Parameters  WIDTH    Bits of a beat.
//             BLOCK    Beats of an input block.
//             DIMS     Loops.
//             EXTENTS  32 bits per loop, the outermost in the low bits: its number of iterations.
//             STRIDES  32 bits per loop in the same order, each at least 0. Every sum is less than BLOCK.
// Latency     Beat 0 of a block is read 1 cycle after its last beat was accepted, or directly after the
//             last beat of the previous block. Beats are read one per cycle and offered 1 cycle after the
//             read. Reading continues in cycles in which the output is free or accepted; otherwise it
//             stalls. Beats of block b+2 are accepted from the cycle after the last read of block b. Beats
//             of the first two blocks are accepted at once. Signal s_ready depends on registers only.
// Contract    A block gives prod(extents) beats, unchanged. The memory holds 2 * BLOCK beats.
`default_nettype none
module hg_gather #(
    parameter integer          WIDTH   = 4,
    parameter integer          BLOCK   = 6,
    parameter integer          DIMS    = 2,
    parameter [DIMS*32-1:0]    EXTENTS = {32'd3, 32'd2},
    parameter [DIMS*32-1:0]    STRIDES = {32'd2, 32'd1}
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [WIDTH-1:0] m_data,
    output wire             m_valid,
    input  wire             m_ready
);
    localparam integer WORDS  = 2 * BLOCK;
    localparam integer AW     = $clog2(WORDS);
    localparam integer SECOND = BLOCK;
    localparam integer MIDDLE = BLOCK - 1;
    localparam integer FINAL  = WORDS - 1;

    // Change of the address when this loop advances and all inner loops restart.
    function [AW-1:0] jump(input integer loop);
        integer d;
        reg [31:0] sum;
        begin
            sum = STRIDES[loop*32 +: 32];
            for (d = loop + 1; d < DIMS; d = d + 1)
                sum = sum - (EXTENTS[d*32 +: 32] - 32'd1) * STRIDES[d*32 +: 32];
            jump = sum[AW-1:0];
        end
    endfunction

    (* ram_style = "auto" *) reg [WIDTH-1:0] mem [0:WORDS-1];
    reg [WIDTH-1:0] data_reg;
    reg             valid_reg;
    reg [1:0]       full_reg;               // per half of the memory
    reg             into_reg, from_reg;     // the half that is written; read
    reg [AW-1:0]    write_reg, read_reg;

    wire en    = m_ready || !valid_reg;
    wire take  = s_valid && s_ready;
    wire issue = en && full_reg[from_reg];
    wire block_in = take && write_reg == (into_reg ? FINAL[AW-1:0] : MIDDLE[AW-1:0]);

    assign s_ready = !full_reg[into_reg];
    assign m_data  = data_reg;
    assign m_valid = valid_reg;

    genvar k;
    generate
        for (k = 0; k < DIMS; k = k + 1) begin : loop   // from the innermost loop outwards
            localparam integer d = DIMS - 1 - k;
            localparam integer EXTENT = EXTENTS[d*32 +: 32];
            localparam integer W = (EXTENT <= 1) ? 1 : $clog2(EXTENT);
            localparam [W-1:0] LAST = EXTENT[W-1:0] - 1'b1;
            localparam [AW-1:0] JUMP = jump(d);
            reg  [W-1:0] count_reg;
            wire         last = count_reg == LAST;
            wire          inner_end;    // last iteration of all inner loops
            wire [AW-1:0] inner_move;
            if (k == 0) begin : innermost
                assign inner_end  = 1'b1;
                assign inner_move = {AW{1'b0}};
            end else begin : outer
                assign inner_end  = loop[k-1].at_end;
                assign inner_move = loop[k-1].move;
            end
            wire          at_end = last && inner_end;
            wire [AW-1:0] move = inner_move | ((inner_end && !last) ? JUMP : {AW{1'b0}});
            always @(posedge clk) begin
                if (issue && inner_end) count_reg <= last ? {W{1'b0}} : count_reg + 1'b1;
                if (rst) count_reg <= {W{1'b0}};
            end
        end
    endgenerate
    wire block_out = issue && loop[DIMS-1].at_end;

    always @(posedge clk) begin
        if (take) mem[write_reg] <= s_data;
        if (en) data_reg <= mem[read_reg];
    end

    always @(posedge clk) begin
        if (take) write_reg <= (write_reg == FINAL[AW-1:0]) ? {AW{1'b0}} : write_reg + 1'b1;
        if (block_in) begin
            into_reg <= !into_reg;
            full_reg[into_reg] <= 1'b1;
        end
        if (issue) read_reg <= read_reg + loop[DIMS-1].move;
        if (block_out) begin
            read_reg <= from_reg ? {AW{1'b0}} : SECOND[AW-1:0];
            from_reg <= !from_reg;
            full_reg[from_reg] <= 1'b0;
        end
        if (en) valid_reg <= full_reg[from_reg];
        if (rst) begin
            write_reg <= {AW{1'b0}};
            read_reg  <= {AW{1'b0}};
            into_reg  <= 1'b0;
            from_reg  <= 1'b0;
            full_reg  <= 2'b00;
            valid_reg <= 1'b0;
        end
    end
endmodule
`default_nettype wire
