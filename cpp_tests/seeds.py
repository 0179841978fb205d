"""Bugs seeded in the C++ library and in its binding modules. The test of each header must find its bug.

python cpp_tests/seeds.py [NAME ...]   a copy of the repository with one bug each; exit code 1 if one is not found
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS, BINDING = "templates/cpp/hg", "hlsgen/hls/binding"


@dataclass(frozen=True)
class Seed:
    """`name`: a header or a binding module. `before`, `after`: the changed text. `test`: the test that must fail."""

    name: str
    before: str
    after: str
    test: str

    @property
    def path(self) -> str:
        return f"{HEADERS}/{self.name}" if self.name.endswith(".hpp") else f"{BINDING}/{self.name}"


SEEDS = (
    Seed("argmax.hpp", "top > best", "top >= best", "test_pools.py::test_argmax"),
    Seed("compare.hpp", "int code = BASE;", "int code = 0;", "test_rescale.py::test_comparisons"),
    Seed("compare.hpp", "((x[n] >= thresholds", "((ap_int<20>(x[n]) >= thresholds", "test_wide_inputs.py"),
    Seed("concat.hpp", "beat < BEATS_A)", "beat < BEATS_B)", "test_moves.py::test_two_streams"),
    Seed(
        "conv.hpp",
        "now.first() ? part",
        "now.last() ? part",
        "test_windows.py::test_tap_by_tap",
    ),
    Seed("correct.hpp", "within >= threshold", "within > threshold", "test_rescale.py::test_correct"),
    Seed("dynamic_mvu.hpp", "? p * SIMD + i : i * PE + p", "? i * PE + p : p * SIMD + i", "test_dynamic_mvu.py"),
    Seed("float32.hpp", "rest == 0.5f && (whole & 1) != 0", "rest == 0.5f", "test_float32.py::test_rounding"),
    Seed("float32.hpp", "rest == half && (kept & 1) != 0", "rest == half", "test_float32.py::test_integers_to_float"),
    Seed("float32.hpp", "~bits : bits | 0x80000000u", "-bits : bits | 0x80000000u", "test_float32.py::test_key"),
    Seed("float32.hpp", "f32_of(x) - c", "f32_of(x) + c", "test_float32.py::test_two_streams"),
    Seed("fork.hpp", "    send(x, others...);\n", "", "test_moves.py::test_one_stream"),
    Seed("grouped.hpp", "+ p / ROWS)", "+ p % (PE / ROWS))", "test_windows.py::test_all_taps"),
    Seed(
        "join.hpp",
        "FACTOR(FA) + y[n] * FACTOR(FB)",
        "FACTOR(FB) + y[n] * FACTOR(FA)",
        "test_moves.py::test_two_streams",
    ),
    Seed("lane_shift.hpp", "SUM(SUM(x[n]) << left)", "SUM(x[n])", "test_rescale.py::test_lane_shift"),
    Seed("lane_shift.hpp", "shift > 0 && rest == half", "rest == half", "test_rescale.py::test_lane_shift"),
    Seed("lane_shift.hpp", "code > high ? high : code", "code", "test_rescale.py::test_lane_shift"),
    Seed("lines.hpp", "place > KNOTS - 1 ? KNOTS - 1", "place > KNOTS ? KNOTS - 1", "test_rescale.py::test_lines"),
    Seed("lines.hpp", "v < 0 ? SUM(SUM(MIRROR)", "v <= 0 ? SUM(SUM(MIRROR)", "test_rescale.py::test_lines"),
    Seed("moves.hpp", "second != (ended[0] & (BLOCKS > 1))", "false", "test_moves.py::test_one_stream"),
    Seed("moves.hpp", "ended[d + 1] ? next_last : ends[d]", "next_last", "test_moves.py::test_one_stream"),
    Seed("mvu.hpp", "column == 0 ? sum : SUM", "group == 0 ? sum : SUM", "test_mvu.py"),
    Seed("norm.hpp", "bool up = (root & 1) != 0", "bool up = (root & 2) != 0", "test_rows.py::test_normalization"),
    Seed("pair.hpp", "ap_int<17>(ZPO)", "ap_int<16>(ZP1)", "test_rescale.py::test_every_pair"),
    Seed("pair.hpp", "SHIFT > 0 ? 0 : SHIFT < -32", "SHIFT > 1 ? 0 : SHIFT < -32", "test_rescale.py::test_every_pair"),
    Seed("pool.hpp", "Y(X(SHAPE::PAD))", "Y(0)", "test_windows.py::test_tap_by_tap"),
    Seed("pool_tree.hpp", "t + half < TAPS", "t + half < TAPS - 1", "test_pools.py::test_pools"),
    Seed(
        "ports.hpp",
        "y.last = beat == BEATS - 1;",
        "y.last = beat == BEATS;",
        "../tests/hls/test_own_bench.py::test_makefile_builds_and_finds_a_wrong_beat",
    ),
    Seed("ports.hpp", "if (beat == 0) {", "if (beat != 0) {", "test_state.py"),
    Seed("products.hpp", "of(x) != 0) == (w != 0)", "of(x) != 0) != (w != 0)", "test_mvu.py"),
    Seed("quantize.hpp", "(all >> point::moved)", "(all)", "test_quantize.py"),
    Seed("rank.hpp", "(next << kept) | state", "(state << taken) | next", "test_rescale.py::test_rank"),
    Seed("reduce.hpp", "first_y ? so_far : REDUCE", "first_x ? so_far : REDUCE", "test_pools.py::test_pools"),
    Seed("reduce.hpp", "turned = WIDTH == 1", "turned = true", "test_pools.py::test_pools"),
    Seed("reductions.hpp", "b > a ? b : a", "b > a ? a : b", "test_pools.py::test_pools"),
    Seed(
        "rounding.hpp",
        "case round_away: return any && !negative",
        "case round_away: return any",
        "test_quantize.py::test_every_quantizer",
    ),
    Seed("rows.hpp", "beat == 0 || top > best", "top > best", "test_rows.py::test_rows_of_integers"),
    Seed("rows.hpp", "below < LAST ? below : LAST", "below", "test_rows.py::test_softmax"),
    Seed("rows.hpp", "apart / COUNT + 1", "apart / COUNT", "test_rows.py::test_rows_of_integers"),
    Seed("scale.hpp", "x[n] < centre[fold][n]", "x[n] <= centre[fold][n]", "test_rescale.py::test_scale"),
    Seed("scale_f32.hpp", "rest >= half - d", "rest > half - d", "test_rescale.py::test_scale_f32"),
    Seed("scale.hpp", "x[n] * multiplier", "ap_int<20>(x[n]) * multiplier", "test_wide_inputs.py"),
    Seed("shift.hpp", "SUM(SUM(x[n]) << LEFT)", "SUM(x[n])", "test_quantize.py"),
    Seed("sliding.hpp", "pixel % SHAPE::PIXELS * lanes", "n % SHAPE::PIXELS * lanes", "test_windows.py::test_sliding"),
    Seed(
        "softmax.hpp",
        "sum.add(beat == 0, addends);\n        waiting",
        "sum.add(n == 0, addends);\n        waiting",
        "test_rows.py::test_softmax",
    ),
    Seed("softmax.hpp", "1 - 2 * M_BITS -", "2 - 2 * M_BITS -", "test_rows.py::test_softmax"),
    Seed("softmax.hpp", "quotient < 5.96", "quotient <= 5.96", "test_rows.py::test_softmax"),
    Seed("softmax_mask.hpp", "word == MASKS - 1 ? 0 : word + 1", "(word + 1) % BEATS", "test_rows.py::test_softmax"),
    Seed(
        "softmax_mask.hpp",
        "says == mask_even ? CODE(0)",
        "says == mask_even ? CODE(x[i])",
        "test_rows.py::test_softmax",
    ),
    Seed("state.hpp", "left[beat] = s.read();", "left[0] = s.read();", "test_state.py"),
    Seed("state.hpp", "m.write(found[beat]);", "m.write(found[BEATS - 1 - beat]);", "test_state.py"),
    Seed("table.hpp", "EVEN ? 0 : 1", "EVEN ? 1 : 0", "test_rescale.py::test_tables"),
    Seed("thresholds.hpp", "count + half <= STEPS &&", "count + half < STEPS &&", "test_rescale.py::test_comparisons"),
    Seed("types.hpp", "#define HG_ROM(C, T) T", "#define HG_ROM(C, T) ap_int<3>", "test_exact_constants.py"),
    Seed("types.hpp", "traits<T>::width <= 32", "traits<T>::width <= 40", "test_mvu.py"),
    Seed("types.hpp", "static const bool is_signed = true", "static const bool is_signed = false", "test_float32.py"),
    Seed("types.hpp", "1 + bit_length(value / 2)", "1 - bit_length(value / 2)", "test_windows.py::test_sliding"),
    Seed("width.hpp", "last && n > (GROUP_OUT - 1) % OUT", "n > (GROUP_OUT - 1) % OUT", "test_width.py"),
    Seed("windows.hpp", "!line.within(0, words)", "!line.within(0, words + 1)", "test_windows.py::test_tap_by_tap"),
    Seed("windows.hpp", "smaller_of(SENDS, look + 1)", "SENDS", "test_windows.py::test_tap_by_tap"),
    Seed("windows.hpp", "new_words = rises;", "new_words = true;", "test_windows.py::test_sliding"),
    Seed("counters.hpp", "around >= 0", "around > 0", "test_windows.py::test_sliding"),
    Seed("counters.hpp", "(left <= 3)", "(left <= 2)", "test_windows.py::test_sliding"),
    Seed("width.hpp", "writes = !reads | (filled >= 0)", "writes = filled >= 0", "test_width.py"),
    Seed("width.hpp", "ap_int<counter_bits(room) + 1>", "ap_int<counter_bits(room)>", "test_width.py"),
    Seed("width.hpp", "filled >= 0 ? left_filled", "filled > 0 ? left_filled", "test_width.py"),
    Seed("width.hpp", "steps(in_tail - out_tail)", "steps(in_tail - out)", "test_width.py"),
    Seed("width.hpp", "steps(spare + steps(in_tail))", "steps(spare + steps(in))", "test_width.py"),
    Seed("float_units.py", '"hg::f32_max"', '"hg::f32_min"', "test_float32.py::test_arithmetic"),
    Seed("lookups.py", "BASE=search.base", "BASE=0", "test_rescale.py::test_comparisons"),
    Seed("lookups.py", "TOTAL=lookup.total", "TOTAL=lookup.total + 1", "test_rescale.py::test_tables"),
    Seed("moves.py", "unit.pads, strict=True", "unit.pads[::-1], strict=True", "test_moves.py::test_one_stream"),
    Seed("multiplied.py", "for d in (-2 * one_code, 2 * one_code)", "for d in (0, 0)", "test_rescale.py::test_scale"),
    Seed(
        "norm.py",
        "(constants.factor, constants.addend, constants.start)",
        "(constants.addend, constants.factor, constants.start)",
        "test_rows.py::test_normalization",
    ),
    Seed(
        "per_lane.py",
        "np.ascontiguousarray(values[table])",
        "np.ascontiguousarray(values[table[::-1]])",
        "test_rescale.py::test_scale",
    ),
    Seed(
        "rows.py",
        'ROOT=f"ap_uint<{sizes.root}>"',
        'ROOT=f"ap_uint<{sizes.root - 1}>"',
        "test_rows.py::test_rows_of_integers",
    ),
    Seed("shifts.py", "+ (1 << shift_by.shift) - 1)", "+ (1 << shift_by.shift))", "test_quantize.py"),
    Seed("shifts.py", '"AP_RND_INF"', '"AP_RND"', "test_quantize.py"),
    Seed("softmax.py", "low - last, IntType", "low - last + 1, IntType", "test_rows.py::test_softmax"),
    Seed("softmax.py", "unit.fraction + length.bit_length()", "unit.fraction", "test_rows.py::test_softmax"),
    Seed(
        "units.py",
        "return bind_tree(node, unit)",
        "return bind_tree(node, replace(unit, taps=unit.taps - 1))",
        "test_pools.py::test_pools",
    ),
    Seed("weighted.py", "ROW_FOLDS=unit.row_folds", "ROW_FOLDS=unit.col_folds", "test_mvu.py"),
    Seed(
        "windows.py",
        "window.kernel, window.strides,",
        "window.strides, window.kernel,",
        "test_windows.py::test_sliding",
    ),
)


def is_found_by_test(seed: Seed, copy: Path) -> bool:
    """True if the seed's test fails, in either dialect, or the changed text does not compile. Restores the copy."""
    path = copy / seed.path
    text = path.read_text()
    assert seed.before in text, f"{seed.name} no longer contains {seed.before!r}"
    path.write_text(text.replace(seed.before, seed.after, 1))
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"cpp_tests/{seed.test}"]
        completed = subprocess.run(
            command, cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True
        )
    finally:
        path.write_text(text)
    if completed.returncode not in (0, 1):
        raise SystemExit(completed.stdout[-2000:] + completed.stderr[-2000:])
    return completed.returncode == 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of headers and modules; all if none is given")
    names = parser.parse_args().names
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "results"))
        # An installed package finds its templates there. The copy's templates come first.
        (copy / "hlsgen" / "templates").symlink_to(copy / "templates")
        for seed in SEEDS:
            if names and seed.name not in names:
                continue
            start = time.time()
            is_found = is_found_by_test(seed, copy)
            missed += not is_found
            print(
                f"{'found' if is_found else 'MISSED':6} {seed.name}: {seed.before!r} {time.time() - start:.0f} s",
                flush=True,
            )
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
