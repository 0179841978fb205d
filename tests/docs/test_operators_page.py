"""docs/operators.md lists the operators of the importer's table, all of them and no others; and the table is whole."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from paths import ROOT

from hlsgen.diagnostics import HlsgenError
from hlsgen.frontend.constant_folding import MAX_ELEMENTS, Const, Dynamic
from hlsgen.frontend.constants import refused
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.node_context import NodeContext
from hlsgen.frontend.operator_rule import Role
from hlsgen.frontend.ops_attention import ATTENTION, MULTI_HEAD
from hlsgen.frontend.ops_host import on_host
from hlsgen.frontend.rules import RULES, rule_of
from hlsgen.numerics import activations

PAGE = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
NAME = re.compile(r"\bi?[A-Z]\w+")
#: Sections of the page whose tables do not list accepted operators in their first column.
OTHER = {"Dialects", "Two inputs", "Domains", "Refused"}


def rows(title: str) -> list[list[str]]:
    """Cells of the tables of a section, without its subsections and without the heads."""
    section = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.M | re.S)
    assert section, title
    lines = [line for line in section[1].splitlines() if line.startswith("|")]
    heads = {i - 1 for i, line in enumerate(lines) if line.startswith("|---")}
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return [c for i, c in enumerate(cells) if i not in heads and i - 1 not in heads]


def first_column(title: str) -> set[str]:
    return {name for row in rows(title) for name in NAME.findall(row[0])}


SECTIONS = re.findall(r"^##+ (.*)$", PAGE, re.M)
ACCEPTED = {op_type for _, op_type in RULES}
#: Operators that the importer replaces by others.
EXPANDED = {ATTENTION, MULTI_HEAD}
#: By node.domain.
BY_DOMAIN = {
    domain: {op for row_domains, op in RULES if domain in row_domains} for domains, _ in RULES for domain in domains
}


def test_every_operator_is_on_the_page() -> None:
    listed = set().union(*(first_column(title) for title in SECTIONS if title not in OTHER))
    assert listed == ACCEPTED | EXPANDED


def test_domains() -> None:
    listed = {}
    for domains, operators, *_ in rows("Domains"):
        names = operators.split(", ")
        assert names == sorted(names)
        for domain in re.findall(r"`(.*?)`", domains) or [""]:
            listed[domain] = set(names)
    assert listed.pop("") == ACCEPTED - set().union(*(BY_DOMAIN[d] for d in ONNX))
    assert listed == {domain: names for domain, names in BY_DOMAIN.items() if domain not in ONNX}


def test_operators_on_constants() -> None:
    assert first_column("Of constants") == {op for (_, op), rule in RULES.items() if rule.fold is not refused}


def test_operators_of_several_computed_tensors() -> None:
    """Operators on booleans and Where accept only tensors that are functions of one tensor."""
    joins = {op for (_, op), rule in RULES.items() if rule.join}
    text = PAGE.split("### Functions of one tensor\n", 1)[1].split("\n#", 1)[0]
    assert joins - first_column("Two computed tensors") == {"And", "Or", "Where"} <= set(NAME.findall(text))
    assert first_column("Two computed tensors") <= joins


def test_operators_that_only_the_host_does() -> None:
    """They are refused between quantizers, or exist for constants only."""
    only_host = {op for (_, op), rule in RULES.items() if rule.role is Role.HOST}
    elsewhere = set().union(
        *(first_column(t) for t in SECTIONS if t not in OTHER | {"On the host only", "Of constants"})
    )
    listed = first_column("On the host only")
    assert only_host <= listed
    assert listed - only_host == ACCEPTED - elsewhere - only_host - {"Shape"}


def test_refused_operators() -> None:
    """Rows of the last table that are about operators alone; and every other operator of ONNX."""
    cells = [row[0] for row in rows("Refused") if re.fullmatch(r"[A-Z]\w+(, [A-Z]\w+)*", row[0])]
    listed = {name for cell in cells for name in NAME.findall(cell)}
    assert listed >= {"LSTM", "DynamicQuantizeLinear", "RequantizedConv"}
    standard = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    for op_type in listed | standard - ACCEPTED:
        for domain in BY_DOMAIN:
            with pytest.raises(HlsgenError, match=r"HG010|HG011"):
                rule_of(domain, op_type, "node")


def test_the_table_has_one_row_for_each_operator_of_a_domain() -> None:
    assert sum(len(domains) for domains, _ in RULES) == sum(map(len, BY_DOMAIN.values()))
    for (domains, op_type), rule in RULES.items():
        assert all(rule_of(domain, op_type, "node") is rule for domain in domains)


def test_every_activation_can_be_imported() -> None:
    """GeluTanh is a Gelu with an attribute."""
    missing = activations.KINDS - {"GeluTanh"} - BY_DOMAIN[""]
    assert not missing, f"frontend/rules.py, RULES: no row for {sorted(missing)}"


def test_the_contract_says_what_every_activation_computes() -> None:
    """The rounded real function, or one operation after the other."""
    page = (ROOT / "docs" / "numeric-contract.md").read_text(encoding="utf-8")
    section = page.split("### Activations")[1].split("\n## ")[0]
    smooth, literal = section.split("\nAbs, ")[:2]
    for kinds, text in ((activations.SMOOTH, smooth), (activations.LITERAL, "Abs, " + literal)):
        missing = set(kinds) - {"GeluTanh"} - set(NAME.findall(text))
        assert not missing, f"docs/numeric-contract.md, Activations: {sorted(missing)} are missing"


def test_every_row_of_an_activation_has_a_meaning() -> None:
    rows_ = {op for (_, op), rule in RULES.items() if rule.convert.__qualname__.startswith("activation.")}
    assert rows_ <= activations.KINDS
    assert len(rows_) > 15


@pytest.mark.parametrize(
    "op_type", sorted(first_column("Of constants") & {s.name for s in onnx.defs.get_all_schemas()})
)
def test_constants_do_not_grow_without_bound(op_type: str) -> None:
    """Two that broadcast to more elements than a constant may have."""
    row, column = (Const(np.broadcast_to(np.float32(1), shape)) for shape in ((1, 8192), (8192, 1)))
    for count in (2, 3):
        inputs = (row, column, column)[:count]
        proto = onnx.helper.make_node(op_type, ["a", "b", "c"][:count], ["y"])
        try:
            results = rule_of("", op_type, "node").fold(NodeContext(proto, "node", {}, inputs))
        except HlsgenError:
            continue
        assert all(const.array.size <= MAX_ELEMENTS for const in results)


@pytest.mark.parametrize(
    "op_type, constants",
    [
        ("Pad", [np.array([0, 0, 0, 0, 0, 0, 9000, 9000])]),
        ("Resize", [None, np.array([1, 1, 800, 800], np.float32)]),
        ("Tile", [np.array([1, 1, 800, 800])]),
        ("Expand", [np.array([1, 90000, 80, 8])]),
    ],
)
def test_the_host_computes_nothing_too_large(
    op_type: str, constants: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that is refused for its size is never computed."""
    monkeypatch.delattr("hlsgen.frontend.ops_host.evaluate")
    names = ["x", *(f"c{i}" if c is not None else "" for i, c in enumerate(constants))]
    inputs = (Dynamic((1, 1, 80, 8), "float32", 0), *(None if c is None else Const(c) for c in constants))
    node = NodeContext(onnx.helper.make_node(op_type, names, ["y"]), "node", {}, inputs)
    with pytest.raises(HlsgenError, match="HG004"):
        on_host(node)
