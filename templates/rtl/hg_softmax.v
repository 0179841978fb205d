// hg_softmax: Softmax of rows of codes, as float32.
//
// Purpose     d = largest code of the row - code. The result is numerator[d] * fl(1 / sum of power[d]),
//             where the sum is exact and rounded once. With IN_ORDER it is numerator[d] / sum, 0 below
//             2^-24. The sum is then rounded after each addition, from the first element to the last.
// Parameters  LANES      Elements of a beat; 1 if IN_ORDER.
//             BEATS      Beats of a row.
//             IN_W       Bits of a code.
//             IN_SIGNED  1: codes are two's complement; 0: unsigned.
//             LAST       Index of the last word of both lookup tables. Larger distances use it.
//             W          Bits of a power: fixed point, or 32 for float32 if IN_ORDER.
//             FRACTION   Fraction bits of a power, if not IN_ORDER.
//             IN_ORDER   0 or 1.
//             TINY       1: shares other than 0 can be below the smallest normal number; not if IN_ORDER.
//             DSP        0: products in LUTs. Otherwise: products in DSP blocks, and large lookup tables in
//                        block RAM.
//             LOW        0 (if IN_ORDER), or bits of the low part of a distance; the power is then a
//                        product.
//             M_W        Bits of a mantissa of the product's factors.
//             MASKS      0, or words of FILE_mask.mem (hg_softmax_rows).
//             FILE       File name stem of the lookup tables (hg_softmax_powers).
// Latency     Beat 0 of a row is read 1 cycle after its last beat was accepted, or directly after the last
//             beat of the previous row. It is offered 25 + BEATS + ceil(log2(LANES)) enabled cycles after
//             the read; 2 more if TINY; 24 + BEATS if IN_ORDER; 10 later if LOW. One beat per cycle. Row
//             b+2 is accepted after the last read of row b.
// Contract    Exact. Reading and all later stages stall while m_valid is not accepted. Signal s_ready
//             depends on registers only. power[0] is the largest power, 1 if not IN_ORDER. Sums are finite.
`default_nettype none
module hg_softmax #(
    parameter integer LANES     = 2,
    parameter integer BEATS     = 3,
    parameter integer IN_W      = 8,
    parameter integer IN_SIGNED = 1,
    parameter integer LAST      = 100,
    parameter integer W         = 40,
    parameter integer FRACTION  = 39,
    parameter integer IN_ORDER  = 0,
    parameter integer LOW       = 0,
    parameter integer M_W       = 44,
    parameter integer TINY      = 0,
    parameter integer DSP       = 0,
    parameter integer MASKS     = 0,
    parameter         FILE      = ""
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [LANES*IN_W-1:0] s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire [LANES*32-1:0]   m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
    localparam integer D_W    = (LAST < 1) ? 1 : $clog2(LAST + 1);
    localparam integer LEVELS = (IN_ORDER != 0) ? 0 : $clog2(LANES);
    // Enabled cycles that a buffered element spends in its memory, waiting for a sum.
    localparam integer DELAY  = (IN_ORDER != 0) ? BEATS : 16 + BEATS + LEVELS + ((LOW != 0) ? 1 : 0);
    localparam integer HELD_W = (LOW != 0) ? 31 : D_W;
    localparam integer TW     = (DELAY <= 1) ? 1 : $clog2(DELAY);
    localparam integer SCALE  = (IN_ORDER != 0) ? 18 : (TINY != 0) ? 5 : 3;
    localparam integer CW     = $clog2(BEATS + 1);
    localparam integer OLDEST = DELAY - 1;
    localparam integer BLOCK  = (DSP != 0 && LAST >= 64 && LOW == 0) ? 1 : 0;

    wire en = m_ready || !m_valid;

    wire [LANES*D_W-1:0] distance;
    wire                 valid, first, last;
    hg_softmax_rows #(
        .LANES    (LANES),
        .BEATS    (BEATS),
        .IN_W     (IN_W),
        .IN_SIGNED(IN_SIGNED),
        .LAST     (LAST),
        .D_W      (D_W),
        .MASKS    (MASKS),
        .FILE     (FILE)
    ) u_rows (
        .clk    (clk),
        .rst    (rst),
        .s_data (s_data),
        .s_valid(s_valid),
        .s_ready(s_ready),
        .en     (en),
        .m_data (distance),
        .m_valid(valid),
        .m_first(first),
        .m_last (last)
    );

    // The second pass: the sum of a row.
    wire [LANES*W-1:0]      power;
    wire                    power_valid, power_first, power_last, total_valid;
    wire [LANES*HELD_W-1:0] held;
    reg  [LANES*HELD_W-1:0] waited_reg;
    wire [LANES*32-1:0]     numerator;
    wire [31:0]             total;
    hg_softmax_powers #(
        .LANES   (LANES),
        .D_W     (D_W),
        .LAST    (LAST),
        .W       (W),
        .FRACTION(FRACTION),
        .LOW     (LOW),
        .M_W     (M_W),
        .HELD_W  (HELD_W),
        .BLOCK   (BLOCK),
        .FILE    (FILE)
    ) u_powers (
        .clk        (clk),
        .rst        (rst),
        .en         (en),
        .distance   (distance),
        .valid      (valid),
        .first      (first),
        .last       (last),
        .power      (power),
        .power_valid(power_valid),
        .power_first(power_first),
        .power_last (power_last),
        .held       (held),
        .waited     (waited_reg),
        .numerator  (numerator)
    );
    hg_softmax_sum #(
        .LANES   (LANES),
        .BEATS   (BEATS),
        .W       (W),
        .FRACTION(FRACTION),
        .IN_ORDER(IN_ORDER)
    ) u_sum (
        .clk    (clk),
        .rst    (rst),
        .en     (en),
        .s_data (power),
        .s_valid(power_valid),
        .s_first(power_first),
        .s_last (power_last),
        .m_data (total),
        .m_valid(total_valid)
    );

    // Meanwhile, buffer the distances or their powers. Then the third pass.
    (* ram_style = "auto" *) reg [LANES*HELD_W-1:0] wait_mem [0:DELAY-1];
    reg  [TW-1:0]    place_reg;
    reg  [31:0]      total_reg;
    reg  [CW-1:0]    left_reg;
    reg  [SCALE-1:0] out_reg;
    wire [SCALE:0]   out_in = {out_reg, left_reg != {CW{1'b0}}};
    always @(posedge clk) begin
        if (en) begin
            waited_reg          <= wait_mem[place_reg];
            wait_mem[place_reg] <= held;
            place_reg           <= (place_reg == OLDEST[TW-1:0]) ? {TW{1'b0}} : place_reg + 1'b1;
            if (total_valid) begin
                total_reg <= total;
                left_reg  <= BEATS[CW-1:0];
            end else if (left_reg != {CW{1'b0}}) left_reg <= left_reg - 1'b1;
            out_reg <= out_in[SCALE-1:0];
        end
        if (rst) begin
            place_reg <= {TW{1'b0}};
            left_reg  <= {CW{1'b0}};
            out_reg   <= {SCALE{1'b0}};
        end
    end
    assign m_valid = out_reg[SCALE-1];
    generate
        if (IN_ORDER != 0) begin : divided
            wire [31:0] quotient;
            hg_f32_div #(.PIPE(1)) u_div (
                .clk(clk), .en(en), .a(numerator), .b(total_reg), .y(quotient)
            );
            assign m_data = (quotient[30:23] < 8'd103) ? 32'd0 : quotient;
        end else begin : multiplied
            hg_softmax_scale #(.LANES(LANES), .TINY(TINY), .DSP(DSP)) u_scale (
                .clk(clk), .en(en), .a(numerator), .b(total_reg), .y(m_data)
            );
        end
    endgenerate
    wire unused = &{1'b0, out_in[SCALE]};
endmodule
`default_nettype wire
