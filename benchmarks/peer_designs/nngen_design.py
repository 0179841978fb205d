"""Verilog of NNgen for the CNN of workloads.py: `python nngen_design.py FOLDER`, which gets top.v.

One product at a time (par_ich, par_och 1). Icarus runs it with a memory at its port, which has picture and weights, and
holds the sums against NumPy's. Its codes are signed: quantizers drop a bit more than those of the network.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

for name, kind in (("int", int), ("bool", bool), ("float", float), ("object", object)):
    if not hasattr(np, name):  # nngen 1.3.4 has names that numpy 1.24 has dropped
        setattr(np, name, kind)

import nngen as ng  # noqa: E402
import veriloggen.thread as vthread  # noqa: E402
import veriloggen.types.axi as axi  # noqa: E402
from veriloggen import Delay, Module, Not, Seq, Systask, simulation  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from workloads import image_shift, image_weights  # noqa: E402

#: Bits of a word of the memory; words of it; bytes that arrays begin at a multiple of.
WORD, WORDS, CHUNK = 32, 1 << 20, 64


def variable(values, name: str, kind=ng.int8):
    made = ng.variable(dtype=kind, shape=values.shape, name=name)
    made.set_value(values.astype(np.int64))
    return made


def network():
    """The graph: its input and its output."""
    start = value = ng.placeholder(dtype=ng.int8, shape=(1, 8, 8, 1), name="x")
    *convolutions, last = image_weights()
    for n, weight in enumerate(convolutions):
        kernel = variable(weight.transpose(0, 2, 3, 1), f"w{n}")
        value = ng.conv2d(
            value,
            kernel,
            strides=(1, 1, 1, 1),
            bias=variable(np.zeros(len(weight)), f"b{n}", ng.int32),
            act_func=ng.relu,
            dtype=ng.int8,
            sum_dtype=ng.int32,
            padding=0,
            name=f"conv{n}",
        )
        value.attribute(par_ich=1, par_och=1, cshamt_out=image_shift(weight) + 1)
    value = ng.reshape(value, [1, -1])
    # NNgen flattens with channels last.
    columns = last.reshape(16, 4, 4, 10).transpose(1, 2, 0, 3).reshape(256, 10)
    value = ng.matmul(
        value, variable(columns.T, "w2"), transposed_b=True, dtype=ng.int32, sum_dtype=ng.int32, name="fc"
    )
    value.attribute(par_ich=1, par_och=1)
    return start, value


def expected(picture):
    """Sums of the network of signed codes, halves rounded up."""
    *convolutions, last = image_weights()
    codes = picture.transpose(0, 3, 1, 2).astype(np.int64)
    for weight in convolutions:
        windows = np.lib.stride_tricks.sliding_window_view(codes, (3, 3), (2, 3))
        sums, shift = np.einsum("nchwij,ocij->nohw", windows, weight.astype(np.int64)), image_shift(weight) + 1
        codes = np.clip((np.maximum(sums, 0) + (1 << shift >> 1)) >> shift, 0, 127)
    return codes.reshape(1, -1) @ last.astype(np.int64)


def up(number: int) -> int:
    return -(-number // CHUNK) * CHUNK


def simulated(core, start, out, picture, wanted) -> tuple[int, int]:
    """Cycles of a frame, from start to end, and how many sums are not those that are wanted."""
    weights = ng.export_ndarray([out], CHUNK)
    weights_at = up(start.addr + start.memory_size)
    wanted_at = up(weights_at + len(weights))
    scratch_at = up(wanted_at + out.memory_size)
    memory = np.zeros(WORDS, np.int64)
    axi.set_memory(memory, picture, WORD, 8, start.addr, WORD // 8)
    axi.set_memory(memory, weights, WORD, 8, weights_at)
    axi.set_memory(memory, wanted, WORD, 32, wanted_at, 1)
    bench = Module("bench")
    bench.copy_params(core)
    ports = bench.copy_sim_ports(core)
    clock, reset = ports["CLK"], bench.Wire("RST")
    reset.assign(Not(ports["RESETN"]))
    outside = axi.AxiMemoryModel(
        bench, "memory", clock, reset, datawidth=WORD, memimg=memory, memimg_name="memory.out", memimg_datawidth=WORD
    )
    outside.connect(ports, "maxi")
    control = vthread.AXIMLite(bench, "control", clock, reset, noio=True)
    control.connect(ports, "saxi")
    time = bench.Reg("time_counter", 32, initval=0)
    Seq(bench, "seq", clock, reset)(time.inc())

    def run():  # veriloggen reads the source of this: one plain statement a line
        for _ in range(100):
            pass
        ng.sim.set_global_addrs(control, scratch_at)
        begin = time.value
        ng.sim.start(control)
        ng.sim.wait(control)
        end = time.value
        wrong = 0
        for n in range(10):
            got = outside.read_word(n, out.addr, 32)
            want = outside.read_word(n, wanted_at, 32)
            if vthread.verilog.NotEql(got, want):
                wrong = wrong + 1
        print("FOUND %d %d" % (end - begin, wrong))  # noqa: UP031
        vthread.finish()

    vthread.Thread(bench, "run", clock, reset, run).start()
    bench.Instance(core, "core", params=bench.connect_params(core), ports=bench.connect_ports(core))
    simulation.setup_clock(bench, clock, hperiod=5)
    begin = simulation.setup_reset(bench, ports["RESETN"], bench.make_reset(), period=100, polarity="low")
    begin.add(Delay(20_000_000), Systask("finish"))
    printed = simulation.Simulator(bench, sim="iverilog").run(outputfile="bench.out")
    found = re.search(r"FOUND +(\d+) +(\d+)", printed)
    if not found:
        raise RuntimeError(f"no result: {printed[-500:]}")
    return int(found[1]), int(found[2])


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    start, out = network()
    picture = np.random.default_rng(9).integers(0, 128, (1, 8, 8, 1))
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(work)
        core = ng.to_veriloggen([out], "top", silent=True, config={"maxi_datawidth": WORD})
        (folder / "top.v").write_text(core.to_verilog())
        cycles, wrong = simulated(core, start, out, picture, expected(picture))
        os.chdir(folder)
    print(json.dumps({"cycles": cycles, "equal": wrong == 0}))


if __name__ == "__main__":
    main()
