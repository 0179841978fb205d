"""Writes a graph that holds a single QONNX quantizer: IntQuant, alone.

python make_model.py                                     # 4 bits, scale 0.25, half to even
python make_model.py --scale 0.3 --rounding FLOOR        # any scale, any of the 7 modes
python make_model.py --scale 0.5 0.25 0.125 0.0625       # a scale for each of 4 channels
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

MODES = ["ROUND", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN"]


def main() -> None:
    """Builds the graph from the command line and saves it."""
    parser = argparse.ArgumentParser(description="Write a graph with a single IntQuant.")
    parser.add_argument("--scale", type=float, nargs="+", default=[0.25], help="one, or one a channel")
    parser.add_argument("--zeropt", type=float, default=0.0)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--unsigned", action="store_true")
    parser.add_argument("--narrow", action="store_true", help="drop the lowest (unsigned: highest) code")
    parser.add_argument("--rounding", default="ROUND", choices=MODES)
    parser.add_argument("--channels", type=int, default=None, help="default 16, or the number of scales")
    parser.add_argument("-o", "--output", type=Path, default=Path("quantizer.onnx"))
    args = parser.parse_args()
    channels = args.channels or (len(args.scale) if len(args.scale) > 1 else 16)

    # The parameters are constants of the graph. They broadcast against x the numpy way: shape
    # (1,) is one value for the tensor, shape (channels,) one value for each element of the last axis.
    parameters = {
        "scale": np.array(args.scale, np.float32),
        "zeropt": np.array(args.zeropt, np.float32),
        "bitwidth": np.array(args.bits, np.float32),
    }
    # y = (round(clamp(x / scale + zeropt)) - zeropt) * scale
    node = helper.make_node(
        "IntQuant",
        ["x", *parameters],
        ["y"],
        name="quantizer",
        domain="qonnx.custom_op.general",
        signed=int(not args.unsigned),
        narrow=int(args.narrow),
        rounding_mode=args.rounding,
    )
    graph = helper.make_graph(
        [node],
        "quantizer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels])],
        [numpy_helper.from_array(value, name) for name, value in parameters.items()],
    )
    # The operator lives in a domain of its own, which the model has to import.
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("qonnx.custom_op.general", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), args.output)
    print(f"wrote {args.output}: {channels} channels")


if __name__ == "__main__":
    main()
