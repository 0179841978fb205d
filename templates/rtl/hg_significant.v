// hg_significant: Unsigned integer rounded to KEEP significant bits, to nearest even.
//
// Purpose     Precision that an integer keeps when converted to a float.
// Parameters  W     Bits of x.
//             KEEP  Significant bits, less than W; 24 for float32.
// Latency     2 cycles, advancing on en.
// Contract    Exact. The result is an integer of W + 1 bits whose low bits are zero.
`default_nettype none
module hg_significant #(
    parameter integer W    = 30,
    parameter integer KEEP = 24
) (
    input  wire         clk,
    input  wire         en,
    input  wire [W-1:0] x,
    output wire [W:0]   y
);
    // For i dropped low bits: the remaining value, and the round-up increment in its last place.
    reg [W-1:0] kept, kept_reg;
    reg [W-1:0] up, up_reg;
    reg [W:0]   y_reg;
    integer i;
    always @* begin
        kept = x;
        up   = {W{1'b0}};
        for (i = 1; i <= W - KEEP; i = i + 1)
            if ((x >> (KEEP - 1 + i)) == {{W-1{1'b0}}, 1'b1}) begin
                kept  = x & ({W{1'b1}} << i);
                up[i] = x[i-1] && (x[i] || (x & ~({W{1'b1}} << (i - 1))) != {W{1'b0}});
            end
    end
    always @(posedge clk) if (en) begin
        kept_reg <= kept;
        up_reg   <= up;
        y_reg    <= {1'b0, kept_reg} + {1'b0, up_reg};
    end
    assign y = y_reg;
endmodule
`default_nettype wire
