// hg_window: Line buffer that emits the words of every window of back-to-back images.
//
// Purpose     Input side of hg_conv, hg_dwconv and hg_pool. Emits for each window, in raster order, and for
//             g < GROUPS, r < REPEAT, kh < KH, kw < KW, f < FOLDS one word. It is word g * FOLDS + f of
//             pixel (oy * SH - PT + kh * DH, ox * SW - PL + kw * DW), or PAD outside the image.
// Parameters  UNIT, LANES     Bits of an element, elements of a word.
//             HEIGHT, WIDTH   Pixels of an image. A pixel is GROUPS * FOLDS words.
//             KH, KW, SH, SW, DH, DW, PT, PL  Kernel, stride, dilation, padding at top and left.
//             OUT_H, OUT_W    Windows of an image.
//             GROUPS, FOLDS, REPEAT  See above.
//             DEPTH           Words of the buffer.
//             PAD             Code of the elements outside.
//             LATE            1: en arrives late, see hg_window_count.
// Latency     A window has P = GROUPS * REPEAT * KH * KW * FOLDS words. One word is issued in each enabled
//             cycle (en), except that the first word of a window waits until hg_window_flow reports the
//             window complete. The first word of window v is thus issued in the first enabled cycle after
//             the one in which its newest word was accepted. It is also P or more enabled cycles after the
//             first word of window v - 1. A word is in the memory's output register (`next_valid`) one
//             enabled cycle after its issue, and in x (`x_valid`) two cycles after. Words are accepted,
//             independent of `en`, according to hg_window_flow.
// Contract    DEPTH must satisfy hg_window_flow. Signal s_ready depends on registers only. Output x_last
//             marks the last word of each KH * KW * FOLDS.
`default_nettype none
module hg_window #(
    parameter integer UNIT   = 4,
    parameter integer LANES  = 2,
    parameter integer HEIGHT = 4,
    parameter integer WIDTH  = 5,
    parameter integer KH     = 3,
    parameter integer KW     = 3,
    parameter integer SH     = 1,
    parameter integer SW     = 1,
    parameter integer DH     = 1,
    parameter integer DW     = 1,
    parameter integer PT     = 1,
    parameter integer PL     = 1,
    parameter integer OUT_H  = 4,
    parameter integer OUT_W  = 5,
    parameter integer GROUPS = 1,
    parameter integer FOLDS  = 2,
    parameter integer REPEAT = 2,
    parameter integer DEPTH  = 26,
    parameter [UNIT-1:0] PAD = 0,
    parameter integer LATE   = 0
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  en,
    input  wire [UNIT*LANES-1:0] s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire                  next_valid,
    output wire [UNIT*LANES-1:0] x,
    output wire                  x_valid,
    output wire                  x_last
);
    localparam integer AW = (DEPTH <= 1) ? 1 : $clog2(DEPTH);
    localparam [AW-1:0] TOP = DEPTH[AW-1:0] - 1'b1;

    wire [AW-1:0] address;
    wire start, outside, reduction_end, window_end, complete;
    wire take  = s_valid && s_ready;
    wire next  = complete || !start;
    wire issue = en && next;   // en arrives late
    // A window of one word can end only when that word is available. For longer windows, the next window's
    // words may arrive while the current words are issued.
    localparam [0:0] MORE = GROUPS * REPEAT * KH * KW * FOLDS > 1;
    wire ended = en && window_end && (complete || MORE);
    reg  began_reg;
    always @(posedge clk) began_reg <= issue && start && !rst;

    hg_window_walk #(
        .HEIGHT(HEIGHT), .WIDTH(WIDTH), .KH(KH), .KW(KW), .SH(SH), .SW(SW), .DH(DH), .DW(DW),
        .PT(PT), .PL(PL), .OUT_H(OUT_H), .OUT_W(OUT_W), .GROUPS(GROUPS), .FOLDS(FOLDS),
        .REPEAT(REPEAT), .DEPTH(DEPTH), .ADDR_W(AW)
    ) walk (
        .clk(clk), .rst(rst), .issue(issue), .start(start),
        .address(address), .outside(outside), .reduction_end(reduction_end), .window_end(window_end)
    );

    hg_window_flow #(
        .HEIGHT(HEIGHT), .WIDTH(WIDTH), .SPAN_Y((KH - 1) * DH), .SPAN_X((KW - 1) * DW),
        .SH(SH), .SW(SW), .PT(PT), .PL(PL), .OUT_H(OUT_H), .OUT_W(OUT_W),
        .PIXEL(GROUPS * FOLDS), .DEPTH(DEPTH), .LATE(LATE)
    ) flow (
        .clk(clk), .rst(rst), .take(take), .began(MORE ? began_reg : ended), .ended(ended),
        .room(s_ready), .complete(complete)
    );

    // A word is never read at the edge at which its address is written.
    (* no_rw_check *) reg [UNIT*LANES-1:0] mem [0:DEPTH-1];
    reg [UNIT*LANES-1:0] next_reg, x_reg;
    reg [AW-1:0]         write_reg;
    wire [AW-1:0]        write_next;
    reg                  next_valid_reg, next_last_reg, next_outside_reg;
    reg                  x_valid_reg, x_last_reg, x_outside_reg;
    hg_next #(.W(AW)) writes (.at(write_reg), .down(1'b0), .wrap(write_reg == TOP), .next(write_next));
    always @(posedge clk) begin
        if (take) mem[write_reg] <= s_data;
        if (en)   next_reg       <= mem[address];
    end
    always @(posedge clk) begin
        if (take) write_reg <= write_next;
        if (en) begin
            next_valid_reg   <= issue;
            next_last_reg    <= reduction_end;
            next_outside_reg <= outside;
            x_valid_reg      <= next_valid_reg;
            x_last_reg       <= next_last_reg;
            x_outside_reg    <= next_outside_reg;
            x_reg            <= next_reg;
        end
        if (rst) begin
            write_reg      <= {AW{1'b0}};
            next_valid_reg <= 1'b0;
            x_valid_reg    <= 1'b0;
        end
    end
    assign next_valid = next_valid_reg;
    assign x          = x_outside_reg ? {LANES{PAD}} : x_reg;
    assign x_valid    = x_valid_reg;
    assign x_last     = x_last_reg;
endmodule
`default_nettype wire
