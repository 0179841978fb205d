"""Resizing, slicing and padding of images as steps equals onnxruntime."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from image_steps import agrees, by_ort, code_of, evaluated_chain, imported, imported_node, node_of, small

from hlsgen import ir
from hlsgen.frontend.ops_resize import _ROUNDINGS, _TRANSFORMS

Array = Any
f32, i64 = np.float32, np.int64


@pytest.mark.parametrize("transform", sorted(_TRANSFORMS))
@pytest.mark.parametrize("nearest", sorted(_ROUNDINGS))
def test_resize_modes(transform: str, nearest: str) -> None:
    """All combinations of modes with factors 1 to 5 and 1/2 to 1/5, and uneven sizes, give onnxruntime's pixels."""
    opset = 11 if transform.startswith("tf_") else 19
    refused = 0
    sizes = [(size, size * factor) for size, factor in product([1, 3, 4], [1, 2, 3, 4, 5])]
    for size, out in [*sizes, *((out, size) for size, out in sizes), (4, 7), (7, 5), (5, 9), (8, 3)]:
        if transform == "tf_half_pixel_for_nn" and size == out:
            continue  # onnxruntime copies, whatever half a pixel would say
        attrs = {"mode": "nearest", "coordinate_transformation_mode": transform, "nearest_mode": nearest}
        node, x = node_of("Resize", 4, **attrs), np.arange(size, dtype=f32).reshape(1, 1, -1)
        constants = [np.zeros(0, f32), np.zeros(0, f32), np.asarray([1, 1, out], i64)]
        if code_of(node, x, constants, opset) == "HG010":
            refused += 1
        else:
            found = imported_node(node, x.shape, "float32", constants, opset)
            assert np.array_equal(evaluated_chain(found, x), by_ort(node, x, constants, opset)[0]), (x.shape, out)
    assert refused <= (16 if transform == "half_pixel_symmetric" else 4), (
        "float32 and exact arithmetic give other pixels"
    )


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("rank", [3, 4])
def test_resize_in_two_directions(rank: int, last: bool) -> None:
    rng = np.random.default_rng(rank)
    spatial = slice(1, -1) if last else slice(2, None)
    for scales in [(2, 3), (1, 2), (4, 1), (0.5, 2), (1, 0.25), (1, 1)]:
        x = small(rng, (1, *(4, 8)[4 - rank :], 3) if last else (1, 3, *(4, 8)[4 - rank :]))
        numbers = np.ones(rank, f32)
        numbers[spatial] = scales[4 - rank :]
        simple = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        steps = agrees(node_of("Resize", 3, **simple), x, [None, numbers])
        assert (steps == []) == (set(numbers.tolist()) == {1})
        agrees(node_of("Resize", 2, mode="nearest"), x, [numbers], 10)
        agrees(node_of("Upsample", 2, mode="nearest"), x, [numbers], 9) if min(scales) >= 1 else None
        if min(scales) >= 1:
            agrees(node_of("Upsample", 1, mode="nearest", scales=numbers.tolist()), x, [], 7)
        axes = {"axes": list(range(rank))[spatial]}
        agrees(node_of("Resize", 3, **simple, **axes), x, [None, numbers[spatial]], 18)
        sizes = (np.asarray(x.shape[spatial]) * numbers[spatial]).astype(i64)
        agrees(node_of("Resize", 4, **simple, **axes), x, [None, None, sizes], 18)


def test_scale_one_adds_no_operation() -> None:
    """Scales that round to the same size, and shifts by half a pixel, are refused."""
    x = np.ones((1, 1, 4, 4), f32)
    ones = np.ones(4, f32)
    for mode in ("nearest", "linear", "cubic"):
        assert imported(node_of("Resize", 3, mode=mode), x, [None, ones]) == []
    node = node_of("Resize", 3, mode="linear", coordinate_transformation_mode="asymmetric")
    assert code_of(node, x, [None, np.asarray([1, 1, 1.2, 1], f32)]) == "HG010"
    shifted = {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    assert code_of(node_of("Resize", 3, mode="linear", **shifted), x, [None, ones], 11) == "HG010"
    assert code_of(node_of("Resize", 3, nearest_mode="ceil", **shifted), x, [None, ones], 11) == "HG010"


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_blocks(mode: str, block: int) -> None:
    x = small(np.random.default_rng(block), (2, 2 * block**2, 3, 5))
    agrees(node_of("DepthToSpace", 1, blocksize=block, mode=mode), x, [])
    x = small(np.random.default_rng(block), (2, 3, 2 * block, 4 * block))
    agrees(node_of("SpaceToDepth", 1, blocksize=block), x, [])


# --------------------------------------------------------------------------- parts of tensors


@pytest.mark.parametrize("seed", range(40))
def test_slice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = small(rng, rng.integers(4, 7, int(rng.integers(1, 5))))
    axes = rng.permutation(x.ndim)[: int(rng.integers(1, x.ndim + 1))]
    starts, ends, steps = (np.zeros(len(axes), i64) for _ in range(3))
    for i, axis in enumerate(axes):
        size = x.shape[axis]
        first = int(rng.integers(0, size))
        last = int(rng.integers(first + 1, size + 1))
        starts[i] = first - size * int(rng.integers(0, 2)) if first else int(rng.choice([0, -size, -100]))
        ends[i] = last - size * int(rng.integers(0, 2)) if last < size else int(rng.choice([size, size + 5, 2**31]))
        steps[i] = rng.integers(1, 4)
    signed_axes = axes - x.ndim * rng.integers(0, 2, len(axes))
    agrees(node_of("Slice", 5), x, [starts, ends, signed_axes, steps])
    agrees(node_of("Slice", 4), x, [starts, ends, signed_axes])
    attrs = {"starts": starts.tolist(), "ends": ends.tolist(), "axes": axes.tolist()}
    agrees(node_of("Slice", 1, **attrs), x, [], 9)


def test_slice_of_everything_is_nothing() -> None:
    x = np.ones((2, 3), f32)
    assert imported(node_of("Slice", 3), x, [np.asarray([0, 0]), np.asarray([9, 9])]) == []
    steps = imported(node_of("Slice", 3), x, [np.asarray([1]), np.asarray([2])])
    assert steps == [(ir.Slice(((1, 2, 1), (0, 3, 1))), (1, 3))]


def test_split() -> None:
    x = small(np.random.default_rng(0), (2, 6, 5))
    agrees(node_of("Split", 1, outputs=3, axis=1), x, [])
    agrees(node_of("Split", 1, outputs=2), x, [])
    agrees(node_of("Split", 1, outputs=2, axis=-1, split=[2, 3]), x, [], 11)
    agrees(node_of("Split", 2, outputs=3, axis=1), x, [np.asarray([1, 3, 2], i64)])
    agrees(node_of("Split", 1, outputs=4, axis=2, num_outputs=4), np.ones((1, 1, 7), f32), [], 18)
    assert len(agrees(node_of("Split", 1, outputs=1, axis=1), x, [])[0]) == 0


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_pad(rank: int) -> None:
    """Any axes but the first, pads of any sign, values in float32 and in integers."""
    rng = np.random.default_rng(rank)
    for _ in range(30):
        x = small(rng, (1, *rng.integers(4, 7, rank - 1)))
        pads = rng.integers(-1, 4, 2 * rank) * (rng.random(2 * rank) < 0.5)
        pads[[0, rank]] = 0
        fill = f32(rng.integers(-9, 9))
        agrees(node_of("Pad", 2), x, [pads])
        agrees(node_of("Pad", 3, mode="constant"), x, [pads, fill])
        agrees(node_of("Pad", 1, pads=pads.tolist(), value=float(fill)), x, [], 10)
        axes = rng.permutation(np.arange(1, rank))
        chosen_pads = np.concatenate([pads[axes], pads[axes + rank]])
        agrees(node_of("Pad", 4), x, [chosen_pads, fill, axes - rank], 18)
        agrees(node_of("Pad", 3), x.astype(np.int8), [pads, np.int8(fill)])


def test_pad_avoids_superfluous_transposes() -> None:
    """Tensors whose axes 1 and 2 are padded are images with channels last; pads of 0 add no operation."""
    x = np.ones((1, 4, 5, 3), f32)
    assert imported(node_of("Pad", 2), x, [np.zeros(8, i64)]) == []
    ((op, shape),) = imported(node_of("Pad", 2), x, [np.asarray([0, 1, 2, 0, 0, 3, 4, 0])])
    assert (op, shape) == (ir.Pad((1, 2, 3, 4), 0.0), (1, 8, 11, 3))


# --------------------------------------------------------------------------- refused


X = np.ones((1, 4, 6, 6), f32)
INDEX = np.asarray([1], i64)


@pytest.mark.parametrize(
    "op, x, constants, attrs, code",
    [
        ("Resize", X, [None, np.asarray([1, 1, 2, 2], f32)], {"mode": "linear"}, "HG010"),
        ("Resize", X, [None, np.asarray([1, 1, 2, 2], f32)], {"mode": "cubic"}, "HG010"),
        ("Resize", X, [None, np.asarray([1, 2, 1, 2], f32)], {}, "HG013"),
        ("Resize", X, [None, np.asarray([2, 1, 1, 1], f32)], {}, "HG013"),
        ("Resize", X, [None, np.asarray([1, 1, 2], f32)], {}, "HG013"),
        ("Resize", X, [None, np.asarray([1, 1, np.nan, 2], f32)], {}, "HG013"),
        ("Resize", X, [None, np.asarray([1, 1, 2e4, 2e4], f32)], {}, "HG004"),
        ("Resize", X, [None, None, None], {}, "HG020"),
        ("Resize", X, [None, np.asarray([1, 1, 2, 2], f32)], {"nearest_mode": "simple"}, "HG013"),
        (
            "Resize",
            X,
            [np.zeros(8, f32), np.asarray([1, 1, 2, 2], f32)],
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
            "HG010",
        ),
        ("Resize", X, [None, None, np.asarray([1, 4, 12, 12])], {"keep_aspect_ratio_policy": "larger"}, "HG013"),
        ("DepthToSpace", X, [], {"blocksize": 3}, "HG013"),
        ("DepthToSpace", X, [], {"blocksize": 2, "mode": "RDC"}, "HG013"),
        ("DepthToSpace", X[0], [], {"blocksize": 2}, "HG023"),
        ("SpaceToDepth", X, [], {"blocksize": 4}, "HG013"),
        ("Pad", X, [np.ones(8, i64)], {"mode": "mirror"}, "HG010"),
        ("Pad", X, [np.ones(7, i64)], {}, "HG013"),
        ("Pad", X, [np.asarray([0, 0, -3, 0, 0, 0, -3, 0])], {}, "HG013"),
        ("Pad", X, [np.zeros(8, i64), f32(np.inf)], {}, "HG027"),
        ("Pad", X, [np.zeros(8, i64), np.zeros(2, f32)], {}, "HG023"),
        ("Pad", X.astype(np.int8), [np.zeros(8, i64), f32(0.5)], {}, "HG027"),
        ("Slice", X, [INDEX, INDEX * 2, INDEX * 9], {}, "HG013"),
        ("Slice", X, [INDEX, INDEX * 2, INDEX, 0 * INDEX], {}, "HG013"),
        ("Slice", X, [INDEX, np.asarray([2, 3])], {}, "HG013"),
        ("Slice", X, [INDEX, f32([2])], {}, "HG026"),
        ("Slice", X, [], {}, "HG014"),
        ("Split", X, [np.asarray([1, 2])], {"outputs": 2, "axis": 1}, "HG013"),
        ("Split", X, [np.asarray([4, 0])], {"outputs": 2, "axis": 1}, "HG013"),
        ("Split", X, [np.asarray([2, 2])], {"outputs": 3, "axis": 1}, "HG013"),
        ("Split", X, [], {"outputs": 3, "axis": 1}, "HG013"),
        ("Split", X[..., :5], [], {"outputs": 2, "axis": 3}, "HG013"),
        ("Split", X, [], {"outputs": 2, "axis": 4}, "HG013"),
    ],
)
def test_refused(op: str, x: Array, constants: list[Any], attrs: dict[str, Any], code: str) -> None:
    node = node_of(op, 1 + len(constants), **attrs)
    assert code_of(node, x, constants, 18) == code


def test_computed_parameters_are_refused() -> None:
    assert code_of(node_of("Slice", 3), X, [None, INDEX], position=1) == "HG020"
