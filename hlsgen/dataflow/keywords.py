"""Names that a Verilog module cannot have."""

from __future__ import annotations

#: Words that no Verilog or SystemVerilog module can have as its name, and words that tools reject.
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
    type typedef union unique until var virtual void weak with within accept_on always_comb always_ff always_latch
    binsof covergroup coverpoint endchecker endclocking endgroup endproperty endsequence eventually first_match forkjoin
    ignore_bins illegal_bins implements implies interconnect intersect join_any join_none let nettype nexttime
    noshowcancelled pulsestyle_ondetect pulsestyle_onevent randcase randsequence reject_on s_always s_eventually
    s_nexttime s_until s_until_with soft sync_accept_on sync_reject_on timeprecision unique0 until_with untyped
    wait_order wildcard""".split()
)
#: Words of VHDL-2008, in which cores are instantiated too: no core may have one as its name, in any case.
VHDL_KEYWORDS = frozenset(
    """abs access after alias all and architecture array assert assume assume_guarantee attribute begin block body
    buffer bus case component configuration constant context cover default disconnect downto else elsif end entity exit
    fairness file for force function generate generic group guarded if impure in inertial inout is label library
    linkage literal loop map mod nand new next nor not null of on open or others out package parameter port postponed
    procedure process property protected pure range record register reject release rem report restrict
    restrict_guarantee return rol ror select sequence severity shared signal sla sll sra srl strong subtype then to
    transport type unaffected units until use variable vmode vprop vunit wait when while with xnor xor""".split()
)


def is_keyword(name: str) -> bool:
    """True if the name is a keyword of Verilog, SystemVerilog or VHDL."""
    return name in KEYWORDS or name.lower() in VHDL_KEYWORDS
