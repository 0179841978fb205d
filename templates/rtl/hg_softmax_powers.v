// hg_softmax_powers: Power of e of every distance: once for the row's sum, and again after it.
//
// Purpose     Lookup tables of a Softmax.
// Parameters  LANES     Elements of a beat.
//             D_W       Bits of a distance.
//             LAST      Largest distance.
//             W         Bits of a power.
//             FRACTION  Fraction bits of a power; used if LOW.
//             LOW, M_W  As in hg_softmax_product. LOW = 0: lookup tables of all distances.
//             HELD_W    Bits of a buffered element: D_W, or 31 if LOW.
//             BLOCK     1: lookup tables of distances in block RAM.
//             FILE      File name stem. FILE_power.mem and FILE_numerator.mem hold LAST + 1 words each, of
//                       W and of 32 bits. If LOW, FILE_high.mem and FILE_low.mem belong to
//                       hg_softmax_product.
// Latency     From distance, advancing on en: 2 cycles to power, 0 to held. If LOW: 12 to power, 11 to
//             held. Signals power_valid, power_first, power_last accompany power. From waited: 2 cycles to
//             numerator, 0 if LOW.
// Contract    Returns the words of a distance. Input waited is the held output after its time in the
//             caller's buffer.
`default_nettype none
module hg_softmax_powers #(
    parameter integer LANES    = 2,
    parameter integer D_W      = 7,
    parameter integer LAST     = 100,
    parameter integer W        = 40,
    parameter integer FRACTION = 39,
    parameter integer LOW      = 0,
    parameter integer M_W      = 44,
    parameter integer HELD_W   = 7,
    parameter integer BLOCK    = 0,
    parameter         FILE     = ""
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    en,
    input  wire [LANES*D_W-1:0]    distance,
    input  wire                    valid,
    input  wire                    first,
    input  wire                    last,
    output wire [LANES*W-1:0]      power,
    output wire                    power_valid,
    output wire                    power_first,
    output wire                    power_last,
    output wire [LANES*HELD_W-1:0] held,
    input  wire [LANES*HELD_W-1:0] waited,
    output wire [LANES*32-1:0]     numerator
);
    localparam integer EARLY = (LOW != 0) ? 12 : 2;

    reg  [EARLY-1:0] valid_reg, first_reg, last_reg;
    wire [EARLY:0]   valid_in = {valid_reg, valid};
    wire [EARLY:0]   first_in = {first_reg, first};
    wire [EARLY:0]   last_in  = {last_reg, last};
    assign power_valid = valid_reg[EARLY-1];
    assign power_first = first_reg[EARLY-1];
    assign power_last  = last_reg[EARLY-1];
    always @(posedge clk) begin
        if (en) begin
            valid_reg <= valid_in[EARLY-1:0];
            first_reg <= first_in[EARLY-1:0];
            last_reg  <= last_in[EARLY-1:0];
        end
        if (rst) valid_reg <= {EARLY{1'b0}};
    end

    genvar i;
    generate
        if (LOW != 0) begin : by_product
            hg_softmax_product #(
                .LANES   (LANES),
                .D_W     (D_W),
                .LOW     (LOW),
                .HIGHS   ((LAST >> LOW) + 1),
                .M_W     (M_W),
                .W       (W),
                .FRACTION(FRACTION),
                .FILE    (FILE)
            ) u_product (
                .clk     (clk),
                .en      (en),
                .distance(distance),
                .value   (held),
                .fixed   (power)
            );
            for (i = 0; i < LANES; i = i + 1) begin : lane
                assign numerator[32*i +: 32] = {1'b0, waited[31*i +: 31]};
            end
        end else begin : by_table
            hg_softmax_table #(
                .LANES(LANES),
                .D_W  (D_W),
                .WORDS(LAST + 1),
                .W    (W),
                .BLOCK(BLOCK),
                .FILE (FILE),
                .TAIL ("_power.mem")
            ) u_power (
                .clk     (clk),
                .en      (en),
                .distance(distance),
                .word    (power)
            );
            hg_softmax_table #(
                .LANES(LANES),
                .D_W  (D_W),
                .WORDS(LAST + 1),
                .W    (32),
                .BLOCK(BLOCK),
                .FILE (FILE),
                .TAIL ("_numerator.mem")
            ) u_numerator (
                .clk     (clk),
                .en      (en),
                .distance(waited),
                .word    (numerator)
            );
            assign held = distance;
        end
    endgenerate
    wire unused = &{1'b0, valid_in[EARLY], first_in[EARLY], last_in[EARLY]};
endmodule
`default_nettype wire
