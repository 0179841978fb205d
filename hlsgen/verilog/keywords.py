"""Names that a Verilog module cannot have."""

from __future__ import annotations

#: Words that no Verilog or SystemVerilog module can have as its name, and that tools stumble over.
KEYWORDS = frozenset(
    """always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default
    defparam design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive
    endspecify endtable endtask event for force forever fork function generate genvar highz0 highz1 if ifnone
    incdir include initial inout input instance integer join large liblist library localparam macromodule
    medium module nand negedge nmos nor not notif0 notif1 or output parameter pmos posedge primitive pull0
    pull1 pulldown pullup rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1 scalared
    showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0
    tranif1 tri tri0 tri1 triand trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor
    xnor xor alias assert assume before bind bins bit break byte chandle checker class clocking const
    constraint context continue cover cross dist do endclass endinterface endpackage endprogram enum expect
    export extends extern final foreach global iff import inside int interface interleave local logic longint
    matches modport new null package packed priority program property protected pure rand randc ref restrict
    return sequence shortint shortreal solve static string strong struct super tagged this throughout timeunit
    type typedef union unique until var virtual void weak with within""".split()
)
