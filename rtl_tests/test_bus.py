"""hg_bus_in, hg_bus_out: slots of the bus's words, tlast; hg_keep_in, hg_keep_out: the bytes that count."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from streams import SIMULATORS, Pipeline, Stream, sweep


@dataclass(frozen=True)
class Bus:
    """Beats of `width` bits in slots of `slot` bytes, words of `bus` bytes, `beats` a frame."""

    width: int
    bus: int
    slot: int
    beats: int

    @property
    def parameters(self) -> dict[str, int]:
        return {"WIDTH": self.width, "TDATA_W": 8 * self.bus, "SLOT": 8 * self.slot, "BEATS": self.beats}

    @property
    def words(self) -> int:
        """Of a frame."""
        return -(-self.beats * self.slot // self.bus)

    @property
    def plain(self) -> bool:
        return self.slot == self.bus

    def frame(self, beats: Sequence[int], fill: Callable[[int], int]) -> list[int]:
        """The words of a frame's beats, byte by byte; fill(n): n bits for those that no beat uses."""
        slots = [
            (beat | fill(8 * self.slot - self.width) << self.width).to_bytes(self.slot, "little") for beat in beats
        ]
        data = b"".join(slots)
        padding_bits = self.words * self.bus - len(data)
        data += fill(8 * padding_bits).to_bytes(padding_bits, "little")
        return [int.from_bytes(data[k : k + self.bus], "little") for k in range(0, len(data), self.bus)]

    def word_of(self, beat: int) -> tuple[int, int]:
        """(first, last) word of beat number so and so, of all frames."""
        frame, place = divmod(beat, self.beats)
        ends = place * self.slot // self.bus, ((place + 1) * self.slot - 1) // self.bus
        return frame * self.words + ends[0], frame * self.words + ends[1]

    def made(self, rng: random.Random, frames: int, noise: bool) -> tuple[list[int], list[int], list[int]]:
        """Beats, words and tlast of `frames` frames."""
        beats = [rng.getrandbits(self.width) for _ in range(frames * self.beats)]
        fill = rng.getrandbits if noise else (lambda bits: 0)
        words = [w for k in range(0, len(beats), self.beats) for w in self.frame(beats[k : k + self.beats], fill)]
        return beats, words, [int(k % self.words == self.words - 1) for k in range(len(words))]


CASES = [
    Bus(12, 4, 2, 5),  # two beats a word, the last word half full
    Bus(20, 4, 8, 3),  # two words a beat, of which the second is padding
    Bus(7, 8, 1, 3),  # a frame is less than a word
    Bus(24, 4, 4, 4),
    Bus(100, 4, 16, 2),
    Bus(8, 8, 1, 17),  # a single beat in the last word
    Bus(320, 4, 40, 3),
    Bus(1, 4, 1, 8),
    Bus(32, 4, 4, 1),
    Bus(33, 1, 5, 2),
    Bus(3, 2, 1, 1),
]


def frames_of(bus: Bus) -> int:
    return -(-400 // max(bus.beats, bus.words))


@pytest.mark.cases(1)
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("simulator, bus", sweep(CASES, 3))
def test_bus_in(simulate: Callable[..., None], simulator: str, bus: Bus, wrong: bool) -> None:
    """Padding is ignored. frame_error rises with the first wrong tlast and stays."""
    rng = random.Random(bus.width)
    beats, words, last = bus.made(rng, frames_of(bus), noise=True)
    flip = rng.randrange(30, 60) if wrong else len(words)
    last = [flag ^ (k == flip) for k, flag in enumerate(last)]
    job = Stream(
        {"s_axis_tdata": words, "s_axis_tlast": last},
        {"m_data": beats},
        latency=1 if bus.plain else 2,
        completes=[bus.word_of(k)[1] for k in range(len(beats))],
        continuous="output" if bus.slot < bus.bus else "input",
        levels={"frame_error": [int(count > flip) for count in range(len(words) + 1)]},
        waits_for_reset=bus.plain,
        registered=not bus.plain,
    )
    simulate(simulator, "hg_bus_in", bus.parameters, job)


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, bus", sweep(CASES, 3))
def test_bus_out(simulate: Callable[..., None], simulator: str, bus: Bus) -> None:
    """Padding is zero."""
    beats, words, last = bus.made(random.Random(bus.width), frames_of(bus), noise=False)
    full_mask = {k: beat for beat in range(len(beats)) for k in range(bus.word_of(beat)[0], bus.word_of(beat)[1] + 1)}
    job = Stream(
        {"s_data": beats},
        {"m_axis_tdata": words, "m_axis_tlast": last},
        latency=1 if bus.plain else 2,
        completes=[full_mask[k] for k in range(len(words))],
        continuous="input" if bus.slot <= bus.bus else "output",
        registered=True,
    )
    simulate(simulator, "hg_bus_out", bus.parameters, job)


#: (bytes of a word, payload bytes of the last word)
KEEPS = [(4, 4), (4, 1), (1, 1), (8, 5)]
#: The modules are combinational or unclocked at this port: the bench registers their outputs.
BENCH = """module keep #(parameter BYTES = 1, parameter LAST = 1) (
    input wire clk, input wire rst, input wire [BYTES-1:0] tkeep, input wire tvalid, input wire tready,
    input wire tlast, input wire error_in, output wire frame_error, output wire [BYTES-1:0] made
);
    reg error_reg;
    always @(posedge clk) error_reg <= error_in;
    hg_keep_in #(.BYTES(BYTES), .LAST(LAST)) in (
        .clk(clk), .rst(rst), .tkeep(tkeep), .tvalid(tvalid), .tready(tready), .tlast(tlast),
        .error_in(error_reg), .frame_error(frame_error)
    );
    wire [BYTES-1:0] kept;
    hg_keep_out #(.BYTES(BYTES), .LAST(LAST)) out (.tlast(tlast), .tkeep(kept));
    reg [BYTES-1:0] made_reg;
    always @(posedge clk) made_reg <= kept;
    assign made = made_reg;
endmodule
"""


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("size, last", KEEPS)
def test_keep(simulate: Callable[..., None], simulator: str, size: int, last: int) -> None:
    """An error is a word that is taken without a byte that counts; more bytes are none. Both errors are one."""
    rng = random.Random(size)
    full_mask, some = (1 << size) - 1, (1 << last) - 1
    names = ("rst", "tkeep", "tvalid", "tready", "tlast", "error_in")
    rows = [(1, full_mask, 0, 0, 0, 0)]
    for _ in range(600):
        keep = rng.choice([full_mask, full_mask, full_mask, some, rng.getrandbits(size)])
        rows.append((int(rng.random() < 0.2), keep, *(rng.getrandbits(1) for _ in range(3)), int(rng.random() < 0.1)))
    errors, error = [], 0
    for reset, keep, valid, ready, end, error_in in rows:
        lacks = valid and ready and (some if end else full_mask) & ~keep
        error = 0 if reset else int(bool(error or lacks))
        errors.append(error | error_in)
    kept_masks = [some if row[4] else full_mask for row in rows]
    inputs = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    job = Pipeline(inputs, {"frame_error": errors, "made": kept_masks}, latency=1, enable=None)
    simulate(simulator, "keep", {"BYTES": size, "LAST": last}, job, {"keep.v": BENCH})
