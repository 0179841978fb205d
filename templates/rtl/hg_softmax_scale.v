// hg_softmax_scale: Elements of a beat times the reciprocal of their row's sum, as float32.
//
// Purpose     Last step of a Softmax.
// Parameters  LANES  Elements of a beat.
//             TINY   1: products can be below the smallest normal number, 2^-126.
//             DSP    0: products in LUTs; otherwise in DSP blocks. Used if not TINY.
// Latency     3 cycles, 5 if TINY, advancing on en.
// Contract    y = fl(a * b), to nearest even. Input a is float32, 0 to 1. Input b is float32 and normal, at
//             most 1. If not TINY, a product is 0 or normal, and so is a.
`default_nettype none
module hg_softmax_scale #(
    parameter integer LANES = 2,
    parameter integer TINY  = 0,
    parameter integer DSP   = 0
) (
    input  wire                clk,
    input  wire                en,
    input  wire [LANES*32-1:0] a,
    input  wire [31:0]         b,
    output wire [LANES*32-1:0] y
);
    // A DSP block multiplies by 17 bits. In LUTs both partial products have equal depth.
    localparam integer LOW = (DSP != 0) ? 17 : 12;
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : lane
            if (TINY != 0) begin : any
                hg_f32_mul #(
                    .PIPE(1)
                ) u_mul (
                    .clk(clk),
                    .en (en),
                    .a  (a[32*i +: 32]),
                    .b  (b),
                    .y  (y[32*i +: 32])
                );
            end else begin : normal
                wire [30:0]       own = a[32*i +: 31];
                wire [23:0]       significand = {1'b1, own[22:0]};
                wire [23:0]       factor = {1'b1, b[22:0]};
                wire [23+LOW:0]   low;
                wire [47-LOW:0]   high;
                wire [47:0]       product;
                reg  [7:0]        exponent1_reg, exponent2_reg;
                reg               zero1_reg, zero2_reg;
                if (DSP != 0) begin : blocks
                    (* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)
                    reg [23+LOW:0] low_reg;
                    (* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)
                    reg [47-LOW:0] high_reg;
                    always @(posedge clk) if (en) begin
                        low_reg  <= significand * factor[LOW-1:0];
                        high_reg <= significand * factor[23:LOW];
                    end
                    assign low  = low_reg;
                    assign high = high_reg;
                end else begin : tables
                    (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
                    reg [23+LOW:0] low_reg;
                    (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
                    reg [47-LOW:0] high_reg;
                    always @(posedge clk) if (en) begin
                        low_reg  <= significand * factor[LOW-1:0];
                        high_reg <= significand * factor[23:LOW];
                    end
                    assign low  = low_reg;
                    assign high = high_reg;
                end
                reg [LOW-1:0]  end_reg;
                reg [47-LOW:0] top_reg;
                assign product = {top_reg, end_reg};

                // A product in 2^46 to 2^48: the fraction after the highest bit. Rounding carries into the
                // exponent.
                wire        wide = product[47];
                wire [22:0] fraction = wide ? product[46:24] : product[45:23];
                wire        half = wide ? product[23] : product[22];
                wire        rest = product[21:0] != 22'd0 || (wide && product[22]);
                wire        up   = half && (fraction[0] || rest);
                reg  [30:0] y_reg;
                always @(posedge clk) if (en) begin
                    exponent1_reg <= own[30:23] + b[30:23] - 8'd127;
                    zero1_reg     <= own[30:23] == 8'd0;
                    exponent2_reg <= exponent1_reg;
                    zero2_reg     <= zero1_reg;
                    end_reg       <= low[LOW-1:0];
                    top_reg       <= high + {{24-LOW{1'b0}}, low[23+LOW:LOW]};
                    y_reg         <= {exponent2_reg, 23'd0} + {7'd0, wide, fraction} + {30'd0, up};
                    if (zero2_reg) y_reg <= 31'd0;
                end
                assign y[32*i +: 32] = {1'b0, y_reg};
                wire unused = &{1'b0, a[32*i + 31]};
            end
        end
    endgenerate
    wire unused = &{1'b0, b[31]};
endmodule
`default_nettype wire
