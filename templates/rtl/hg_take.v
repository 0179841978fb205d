// hg_take: Keeps some rows, columns and beats of an image.
//
// Purpose     Slicing: keeps START, START + STEP, ... below STOP of every axis.
// Parameters  WIDTH           Bits of a beat.
//             HEIGHT, COLUMNS, FOLDS  The image: rows, pixels of a row, beats of a pixel.
//             Y0, Y1, YS      Rows: START, STOP, STEP. At least one row is kept. STOP is at most HEIGHT,
//                             STEP at least 1.
//             X0, X1, XS      Columns.
//             C0, C1, CS      Beats of a pixel.
// Latency     0: for a kept beat, m_valid follows s_valid and s_ready follows m_ready. Any other beat is
//             consumed in the cycle in which it is offered, independent of m_ready.
// Contract    Kept beats leave in order and unchanged. Images follow each other.
`default_nettype none
module hg_take #(
    parameter integer WIDTH   = 4,
    parameter integer HEIGHT  = 5,
    parameter integer COLUMNS = 4,
    parameter integer FOLDS   = 2,
    parameter integer Y0      = 1,
    parameter integer Y1      = 5,
    parameter integer YS      = 2,
    parameter integer X0      = 0,
    parameter integer X1      = 4,
    parameter integer XS      = 3,
    parameter integer C0      = 0,
    parameter integer C1      = 1,
    parameter integer CS      = 1
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
    wire       take = s_valid && s_ready;
    wire [2:0] last;   // axis g is at its end
    // step[g]: axis g advances at the end of this cycle.
    wire [3:0] step = {take && (&last), take && last[1] && last[0], take && last[0], take};
    wire [2:0] keeps;

    assign m_data  = s_data;
    assign m_valid = s_valid && (&keeps);
    assign s_ready = m_ready || !(&keeps);

    genvar g;
    generate
        for (g = 0; g < 3; g = g + 1) begin : axis
            localparam integer SIZE  = (g == 0) ? FOLDS : (g == 1) ? COLUMNS : HEIGHT;
            localparam integer START = (g == 0) ? C0 : (g == 1) ? X0 : Y0;
            localparam integer STOP  = (g == 0) ? C1 : (g == 1) ? X1 : Y1;
            localparam integer STEP  = (g == 0) ? CS : (g == 1) ? XS : YS;
            localparam integer END   = START + (STOP - START - 1) / STEP * STEP;
            localparam integer W     = (SIZE <= 1) ? 1 : $clog2(SIZE);
            localparam [W-1:0] LAST    = SIZE[W-1:0] - 1'b1;
            localparam [W-1:0] START_W = START[W-1:0];
            localparam [W-1:0] END_W   = END[W-1:0];
            localparam [W-1:0] STEP_W  = STEP[W-1:0];

            reg  [W-1:0] place_reg;
            assign last[g] = place_reg == LAST;
            always @(posedge clk) begin
                if (step[g]) place_reg <= last[g] ? {W{1'b0}} : place_reg + 1'b1;
                if (rst) place_reg <= {W{1'b0}};
            end

            if (END - START == SIZE - 1 && STEP == 1) begin : all
                assign keeps[g] = 1'b1;
                wire unused = &{1'b0, START_W, END_W, STEP_W};
            end else begin : some
                reg [W-1:0] next_reg;   // next position that is kept
                assign keeps[g] = place_reg == next_reg;
                always @(posedge clk) begin
                    if (step[g] && keeps[g]) next_reg <= (next_reg == END_W) ? START_W : next_reg + STEP_W;
                    if (rst) next_reg <= START_W;
                end
            end
        end
    endgenerate
    wire unused = &{1'b0, step[3]};
endmodule
`default_nettype wire
