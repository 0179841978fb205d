// hg_eltwise_add_fn: Quantized add with multipliers and a shift, for one pair of int8 codes.
//
// Purpose     A = wrap32((a + zp0) * s0), B = wrap32((b + zp1) * s1),
//             t = wrap32(sat32(A + B) * so),
//             h = sat16(round(t / 2^shift)), half to even, for shift >= 0,
//             h = sat16(wrap32(t * 2^-shift)) for shift < 0,
//             c = sat8(sat16(h - zpo)).
// Parameters  PIPE  0: combinational (clk and en unused); 1: pipelined.
// Latency     0 (PIPE = 0), 7 (PIPE = 1).
// Contract    Exact for every value of every port. Types: a, b, c int8; zp0, zp1, zpo int16; s0, s1 uint16;
//             so uint8; shift int8. Shifts of 32 and more in either direction give h = 0. The products
//             wrap; the sum saturates. If pipelined, each parameter is sampled in the cycle of its stage:
//             zp0, zp1 with a and b; s0, s1 one enabled cycle later; so three; shift four; zpo six.
`default_nettype none
module hg_eltwise_add_fn #(
    parameter integer PIPE = 0
) (
    input  wire        clk,
    input  wire        en,
    input  wire [7:0]  a,
    input  wire [7:0]  b,
    input  wire [15:0] zp0,
    input  wire [15:0] zp1,
    input  wire [15:0] zpo,
    input  wire [15:0] s0,
    input  wire [15:0] s1,
    input  wire [7:0]  so,
    input  wire [7:0]  shift,
    output wire [7:0]  c
);
    // 1. Zero points. The sums have 17 bits, so that saturation to 32 never happens.
    wire signed [16:0] u_next = {{9{a[7]}}, a} + {zp0[15], zp0};
    wire signed [16:0] v_next = {{9{b[7]}}, b} + {zp1[15], zp1};
    wire signed [16:0] u, v;

    // 2. Products, low 32 bits of 34.
    wire signed [16:0] s0_s = {1'b0, s0};
    wire signed [16:0] s1_s = {1'b0, s1};
    (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
    wire signed [33:0] au;
    assign au = u * s0_s;
    (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
    wire signed [33:0] bv;
    assign bv = v * s1_s;
    wire [31:0] p, q;

    // 3. The saturating sum.
    wire [32:0] sum      = {p[31], p} + {q[31], q};
    wire        overflow = sum[32] != sum[31];
    wire signed [31:0] w_next = overflow ? {sum[32], {31{!sum[32]}}} : sum[31:0];
    wire signed [31:0] w;

    // 4. The common multiplier, low 32 bits of 41.
    wire signed [8:0]  so_s = {1'b0, so};
    (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
    wire signed [40:0] ws;
    assign ws = w * so_s;
    wire [31:0] t;

    // 5. One right rotation by shift mod 32 serves both directions. For a right shift by n, the top n bits
    // of the word are the shifted-out bits, the others the quotient. For a left shift by 32 - n, the top n
    // bits are the remaining ones.
    wire [4:0]  n       = shift[4:0];
    wire [63:0] twice   = {t, t} >> n;
    wire [31:0] turned  = twice[31:0];
    wire [31:0] top     = ~(32'hFFFFFFFF >> n);
    wire [31:0] outside = turned & top;
    wire        left    = shift[7];
    // |shift| >= 32, except -32: there n = 0, and nothing remains anyway.
    wire        far     = shift[6:5] != {2{left}};
    wire [31:0] whole   = left ? outside : (turned & ~top) | (t[31] ? top : 32'd0);
    wire        half    = !left && outside[31];
    wire        rest    = outside[30:0] != 31'd0;
    wire        up_next = !far && half && (rest || whole[0]);
    wire [31:0] f_next  = far ? 32'd0 : whole;
    wire [31:0] f;
    wire        up;

    // 6. Rounding and saturation to 16 bits. A quotient outside 16 bits saturates with or without the carry
    // of rounding.
    wire        fits  = (&f[31:15]) || !(|f[31:15]);
    wire [16:0] near  = {f[15], f[15:0]} + {16'd0, up};
    wire [15:0] h_next = !fits ? {f[31], {15{!f[31]}}} : (near[16] != near[15]) ? 16'h7FFF : near[15:0];
    wire [15:0] h;

    // 7. Output zero point. Saturation to 16 and then to 8 bits equals saturation to 8 bits.
    wire [16:0] d     = {h[15], h} - {zpo[15], zpo};
    wire        in_byte = (&d[16:7]) || !(|d[16:7]);
    wire [7:0]  c_next = in_byte ? d[7:0] : {d[16], {7{!d[16]}}};

    generate
        if (PIPE != 0) begin : g_pipe
            reg [16:0] u_reg, v_reg;
            reg [31:0] p_reg, q_reg, w_reg, t_reg, f_reg;
            reg        up_reg;
            reg [15:0] h_reg;
            reg [7:0]  c_reg;
            always @(posedge clk) if (en) begin
                u_reg  <= u_next;
                v_reg  <= v_next;
                p_reg  <= au[31:0];
                q_reg  <= bv[31:0];
                w_reg  <= w_next;
                t_reg  <= ws[31:0];
                f_reg  <= f_next;
                up_reg <= up_next;
                h_reg  <= h_next;
                c_reg  <= c_next;
            end
            assign u  = u_reg;
            assign v  = v_reg;
            assign p  = p_reg;
            assign q  = q_reg;
            assign w  = w_reg;
            assign t  = t_reg;
            assign f  = f_reg;
            assign up = up_reg;
            assign h  = h_reg;
            assign c  = c_reg;
        end else begin : g_comb
            assign u  = u_next;
            assign v  = v_next;
            assign p  = au[31:0];
            assign q  = bv[31:0];
            assign w  = w_next;
            assign t  = ws[31:0];
            assign f  = f_next;
            assign up = up_next;
            assign h  = h_next;
            assign c  = c_next;
            wire clock_unused = &{1'b0, clk, en};
        end
    endgenerate

    wire unused = &{1'b0, au[33:32], bv[33:32], ws[40:32], twice[63:32]};
endmodule
`default_nettype wire
