// hg_correct_sum: Last sum of a lane of hg_correct.
//
// Purpose     code = base + more + reached, or `top` if above.
// Parameters  OUT_W  Bits of all operands. Sums are modulo 2^OUT_W.
//             SHORT  1: no carry chain, for few bits with few inputs. The LUT of a bit then has room for
//                    the logic of an open code's consumer.
//             OPEN   1: the code is not registered.
// Latency     1 cycle with en = 1; 0 if OPEN.
// Contract    The register has no reset.
`default_nettype none
module hg_correct_sum #(
    parameter integer OUT_W = 4,
    parameter integer SHORT = 0,
    parameter integer OPEN  = 0
) (
    input  wire             clk,
    input  wire             en,
    input  wire [OUT_W-1:0] base,
    input  wire [OUT_W-1:0] more,
    input  wire             reached,
    input  wire             above,
    input  wire [OUT_W-1:0] top,
    output wire [OUT_W-1:0] code
);
    function [OUT_W-1:0] rippled(input [OUT_W-1:0] a, input [OUT_W-1:0] b, input first);
        integer i;
        reg     carry;
        begin
            carry = first;
            for (i = 0; i < OUT_W; i = i + 1) begin
                rippled[i] = a[i] ^ b[i] ^ carry;
                carry      = (a[i] && b[i]) || (carry && (a[i] || b[i]));
            end
        end
    endfunction

    wire [OUT_W-1:0] total;
    generate
        if (SHORT != 0) begin : tables
            assign total = rippled(base, more, reached);
        end else begin : chain
            wire [OUT_W:0] sum = {more, reached} + {base, 1'b1};
            assign total = sum[OUT_W:1];
            wire unused = &{1'b0, sum};
        end
        if (OPEN != 0) begin : open
            assign code = above ? top : total;
            wire unused = &{1'b0, clk, en};
        end else begin : closed
            reg [OUT_W-1:0] code_reg;
            always @(posedge clk) if (en) code_reg <= above ? top : total;
            assign code = code_reg;
        end
    endgenerate
endmodule
`default_nettype wire
