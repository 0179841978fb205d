// hg_norm_root: Reciprocal square root of each moment, rounded to 24 bits.
//
// Purpose     Computes the factor of a row's elements, 1 / sqrt of an integer, times a constant. With W =
//             moment * FACTOR + ADDEND, k steps give floor(sqrt(START * 4^k / W)), one bit per step, until
//             this has 25 bits. Then significand * 2^(1-k) is sqrt(START / W) rounded to nearest even.
// Parameters  M_W             Bits of a moment (unsigned).
//             S_W             Bits of the sum, which is passed on unchanged.
//             E_W             Bits of the number of steps.
//             W_W             Bits of W.
//             STEPS           Steps after which the root of the largest W has 25 bits.
//             FACTOR          Constant. If it is no power of two, the product with it is computed DIGIT
//                             bits at a time.
//             ADDEND, START   Constants; START < ADDEND.
//             WAYS            Largest number of rows in progress.
//             GAP             Least cycles from a row to the next one. DIGIT = ceil(M_W / GAP), and GAP
//                             determines the number of parallel root units.
// Latency     STEPS + 5 cycles, ceil(M_W / DIGIT) + 2 more unless FACTOR is a power of two. Row k is
//             accepted after the cycle in which row k - WAYS has left, and at least GAP cycles after row
//             k - 1.
// Contract    m = {steps, significand, sum}. Rows leave in order. Signals s_ready and m_valid depend on
//             registers only. START * 4^STEPS >= 2^48 * W for all W.
`default_nettype none
module hg_norm_root #(
    parameter integer         M_W    = 12,
    parameter integer         S_W    = 7,
    parameter integer         E_W    = 6,
    parameter integer         W_W    = 14,
    parameter integer         STEPS  = 33,
    parameter [W_W-1:0]       FACTOR = 1,
    parameter [W_W-1:0]       ADDEND = 5,
    parameter [W_W-1:0]       START  = 4,
    parameter integer         WAYS   = 2,
    parameter integer         GAP    = 20
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [M_W+S_W-1:0]    s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire [E_W+24+S_W-1:0] m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
    localparam integer N_W    = (WAYS <= 1) ? 1 : $clog2(WAYS);
    localparam integer C_W    = $clog2(WAYS + 1);
    localparam integer NEED   = (STEPS + 1 + GAP) / GAP;  // a root unit is busy for STEPS + 2 cycles
    localparam integer ROOTS  = (NEED < WAYS) ? NEED : WAYS;
    localparam integer R_W    = (ROOTS <= 1) ? 1 : $clog2(ROOTS);
    localparam integer G_W    = $clog2(GAP + 1);
    localparam integer PAUSE  = GAP - 1;
    localparam [N_W-1:0] LAST = WAYS[N_W-1:0] - 1'b1;
    localparam [R_W-1:0] END  = ROOTS[R_W-1:0] - 1'b1;

    // Rows in progress: their sums are stored here, and as many results.
    reg  [S_W-1:0]    sums [0:WAYS-1];
    reg  [E_W+23:0]   results [0:WAYS-1];
    reg  [N_W-1:0]   in_reg, done_reg, out_reg;
    reg  [C_W-1:0]    rows_reg, ready_reg;
    reg  [G_W-1:0]    pause_reg;
    wire              stored;
    wire [E_W+23:0]   result;
    wire push = s_valid && s_ready;
    wire pop  = m_valid && m_ready;
    assign s_ready = rows_reg != WAYS[C_W-1:0] && pause_reg == {G_W{1'b0}};
    assign m_valid = ready_reg != {C_W{1'b0}};
    assign m_data  = {results[out_reg], sums[out_reg]};
    always @(posedge clk) begin
        if (push) sums[in_reg] <= s_data[S_W-1:0];
        if (push) in_reg <= (in_reg == LAST) ? {N_W{1'b0}} : in_reg + 1'b1;
        if (stored) results[done_reg] <= result;
        if (stored) done_reg <= (done_reg == LAST) ? {N_W{1'b0}} : done_reg + 1'b1;
        if (pop) out_reg <= (out_reg == LAST) ? {N_W{1'b0}} : out_reg + 1'b1;
        rows_reg  <= rows_reg + {{C_W-1{1'b0}}, push} - {{C_W-1{1'b0}}, pop};
        ready_reg <= ready_reg + {{C_W-1{1'b0}}, stored} - {{C_W-1{1'b0}}, pop};
        if (push) pause_reg <= PAUSE[G_W-1:0];
        else if (pause_reg != {G_W{1'b0}}) pause_reg <= pause_reg - 1'b1;
        if (rst) begin
            in_reg    <= {N_W{1'b0}};
            done_reg  <= {N_W{1'b0}};
            out_reg   <= {N_W{1'b0}};
            rows_reg  <= {C_W{1'b0}};
            ready_reg <= {C_W{1'b0}};
            pause_reg <= {G_W{1'b0}};
        end
    end

    wire [W_W-1:0] w;
    wire           load;
    hg_norm_root_start #(
        .M_W(M_W), .W_W(W_W), .FACTOR(FACTOR), .ADDEND(ADDEND), .GAP(GAP)
    ) start (
        .clk(clk), .rst(rst), .moment(s_data[M_W+S_W-1:S_W]), .s_valid(push), .w(w), .m_valid(load)
    );

    // Root units take turns.
    wire [W_W+1:0]          triple = {2'b00, w} + {1'b0, w, 1'b0};
    wire [ROOTS*(E_W+26)-1:0] found;
    reg  [R_W-1:0]          turn_reg, pick_reg;
    reg  [STEPS+2:0]        busy_reg;
    reg  [E_W+25:0]         picked_reg;
    genvar g;
    generate
        for (g = 0; g < ROOTS; g = g + 1) begin : way
            wire own = ROOTS == 1 || turn_reg == g[R_W-1:0];
            hg_norm_root_way #(.E_W(E_W), .W_W(W_W), .START(START)) root (
                .clk(clk), .load(load && own), .w(w), .triple(triple), .m_data(found[g*(E_W+26) +: E_W+26])
            );
        end
    endgenerate
    always @(posedge clk) begin
        if (load) turn_reg <= (turn_reg == END) ? {R_W{1'b0}} : turn_reg + 1'b1;
        if (busy_reg[STEPS+1]) pick_reg <= (pick_reg == END) ? {R_W{1'b0}} : pick_reg + 1'b1;
        busy_reg   <= {busy_reg[STEPS+1:0], load};
        picked_reg <= found[pick_reg*(E_W+26) +: E_W+26];
        if (rst) begin
            turn_reg <= {R_W{1'b0}};
            pick_reg <= {R_W{1'b0}};
            busy_reg <= {STEPS+3{1'b0}};
        end
    end

    // Rounding. 2^24 becomes half of it, with one step fewer.
    wire        rest;
    wire [24:0] root;
    wire [E_W-1:0] steps;
    assign {rest, steps, root} = picked_reg;
    wire        up      = root[0] && (root[1] || rest);
    wire [24:0] rounded = {1'b0, root[24:1]} + {24'd0, up};
    assign stored = busy_reg[STEPS+2];
    assign result = {steps - {{E_W-1{1'b0}}, rounded[24]}, 1'b1, rounded[22:0]};
    wire unused = &{1'b0, rounded[23]};
endmodule
`default_nettype wire
