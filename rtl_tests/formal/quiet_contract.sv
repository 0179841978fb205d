// quiet_contract: a port that offers nothing.
//
// Purpose     A unit without input and before its first reset offers nothing, because downstream logic may already
//             be running.
`default_nettype none
module quiet_contract (
    input wire clk,
    input wire rst,
    input wire valid
);
    reg was_reset_reg = 1'b0;
    always @(posedge clk) if (rst) was_reset_reg <= 1'b1;

    always @* begin
        if (!was_reset_reg) quiet: assert (!valid);
    end
endmodule
`default_nettype wire
