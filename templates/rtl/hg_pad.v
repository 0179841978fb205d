// hg_pad: Adds a border of constant pixels around an image.
//
// Purpose     Padding of images of HEIGHT x COLUMNS pixels of FOLDS beats.
// Parameters  UNIT            Bits of an element.
//             LANES           Elements of a beat.
//             HEIGHT, COLUMNS, FOLDS  Size of the input image.
//             TOP, LEFT, BOTTOM, RIGHT  Rows and columns of the border.
//             VALUE           Value of every element of the border.
// Latency     0: inside the image m_valid follows s_valid and s_ready follows m_ready in the same cycle. In
//             the border s_ready is 0 and m_valid is 1. Only the first beat emitted for an image waits for
//             s_valid. Nothing is emitted for an image that does not arrive.
// Contract    Beats of the image leave in order and unchanged. Images follow each other.
`default_nettype none
module hg_pad #(
    parameter integer    UNIT    = 3,
    parameter integer    LANES   = 2,
    parameter integer    HEIGHT  = 3,
    parameter integer    COLUMNS = 2,
    parameter integer    FOLDS   = 2,
    parameter integer    TOP     = 1,
    parameter integer    LEFT    = 2,
    parameter integer    BOTTOM  = 0,
    parameter integer    RIGHT   = 1,
    parameter [UNIT-1:0] VALUE   = 5
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [LANES*UNIT-1:0] s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire [LANES*UNIT-1:0] m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
    wire       take = m_valid && m_ready;
    wire [2:0] last;   // axis g is at its end
    // step[g]: axis g advances at the end of this cycle.
    wire [3:0] step = {take && (&last), take && last[1] && last[0], take && last[0], take};
    wire [2:0] inner;
    wire       image = &inner;
    reg        begun_reg;   // a beat of this image has been emitted

    assign m_data  = image ? s_data : {LANES{VALUE}};
    assign m_valid = s_valid || (begun_reg && !image);
    assign s_ready = m_ready && image;

    always @(posedge clk) begin
        if (step[0]) begun_reg <= !step[3];
        if (rst) begun_reg <= 1'b0;
    end

    genvar g;
    generate
        for (g = 0; g < 3; g = g + 1) begin : axis
            localparam integer BEFORE = (g == 0) ? 0 : (g == 1) ? LEFT : TOP;
            localparam integer SIZE   = (g == 0) ? FOLDS : (g == 1) ? COLUMNS : HEIGHT;
            localparam integer AFTER  = (g == 0) ? 0 : (g == 1) ? RIGHT : BOTTOM;
            localparam integer TOTAL  = BEFORE + SIZE + AFTER;
            localparam integer W      = (TOTAL <= 1) ? 1 : $clog2(TOTAL);
            localparam integer FIRST_IN  = BEFORE;
            localparam integer FIRST_OUT = BEFORE + SIZE;
            localparam [W-1:0] LAST      = TOTAL[W-1:0] - 1'b1;
            localparam [W-1:0] ENTER     = FIRST_IN[W-1:0] - 1'b1;
            localparam [W-1:0] LEAVE     = FIRST_OUT[W-1:0] - 1'b1;

            reg  [W-1:0] place_reg;
            assign last[g] = place_reg == LAST;
            always @(posedge clk) begin
                if (step[g]) place_reg <= last[g] ? {W{1'b0}} : place_reg + 1'b1;
                if (rst) place_reg <= {W{1'b0}};
            end

            if (TOTAL == SIZE) begin : all
                assign inner[g] = 1'b1;
                wire unused = &{1'b0, ENTER, LEAVE};
            end else begin : border
                reg inner_reg;
                assign inner[g] = inner_reg;
                always @(posedge clk) begin
                    if (step[g]) begin
                        if (place_reg == LEAVE) inner_reg <= 1'b0;
                        if (place_reg == ((BEFORE == 0) ? LAST : ENTER)) inner_reg <= 1'b1;
                    end
                    if (rst) inner_reg <= (BEFORE == 0);
                end
            end
        end
    endgenerate
endmodule
`default_nettype wire
