// quiet_contract: a port that offers nothing.
//
// Purpose     A unit that nothing was offered to and that was not reset yet offers nothing: what is behind it may be
//             running already.
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
