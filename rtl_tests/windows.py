"""Shared code of the tests of hg_conv, hg_dwconv and hg_pool: geometry, results, and a cycle-accurate model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from streams import integers, mac_latency, memory, pack

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Geometry:
    """Parameters of hg_window in lower case, without depth and padding code."""

    height: int
    width: int
    kh: int
    kw: int
    sh: int
    sw: int
    dh: int
    dw: int
    pt: int
    pl: int
    out_h: int
    out_w: int
    groups: int
    folds: int
    repeat: int

    @property
    def pixel(self) -> int:
        return self.groups * self.folds

    @property
    def words(self) -> int:
        return self.height * self.width * self.pixel

    @property
    def reduction(self) -> int:
        return self.kh * self.kw * self.folds

    @property
    def period(self) -> int:
        return self.groups * self.repeat * self.reduction

    @property
    def windows(self) -> int:
        return self.out_h * self.out_w

    def corners(self) -> Iterator[tuple[int, int, int]]:
        """(oy, y0, x0) of every window of an image."""
        for oy in range(self.out_h):
            for ox in range(self.out_w):
                yield oy, oy * self.sh - self.pt, ox * self.sw - self.pl

    def newest(self) -> list[int]:
        """The last word, counted in the image, that each window waits for."""
        words = []
        for _, y, x in self.corners():
            row = min(max(y + (self.kh - 1) * self.dh, 0), self.height - 1)
            column = min(max(x + (self.kw - 1) * self.dw, 0), self.width - 1)
            words.append((row * self.width + column + 1) * self.pixel - 1)
        return words

    def oldest(self) -> list[int]:
        """The first word that is kept for each window."""
        words = []
        for oy, y, x in self.corners():
            row = min(max(y, 0), self.height)
            keep = y < self.height and (y + self.sh > 0 or oy == self.out_h - 1)
            words.append((row * self.width + (min(max(x, 0), self.width) if keep else 0)) * self.pixel)
        return words

    def min_depth(self) -> int:
        return max(new - old for new, old in zip(self.newest(), self.oldest(), strict=True)) + 1

    def taps(self) -> Iterator[list[int]]:
        """Pixels of the image in each window."""
        for _, y, x in self.corners():
            rows = [r for r in range(y, y + self.kh * self.dh, self.dh) if 0 <= r < self.height]
            columns = [c for c in range(x, x + self.kw * self.dw, self.dw) if 0 <= c < self.width]
            yield [r * self.width + c for r in rows for c in columns]


@dataclass(frozen=True)
class Case:
    """A unit and its parameters. module: conv, dwconv or pool; simd elements in, pe elements out."""

    module: str
    geometry: Geometry
    depth: int
    simd: int
    pe: int
    x_w: int
    x_signed: int
    pad: int
    w_w: int = 1
    mode: int = 0  # of hg_pool: parameter SUM
    style: int = 0
    every: int = 2

    @property
    def acc_w(self) -> int:
        if self.module == "pool":
            return self.x_w + (self.geometry.reduction.bit_length() if self.mode else 0)
        return self.x_w + self.w_w + 1 + (self.geometry.reduction * self.simd).bit_length()

    @property
    def latency(self) -> int:
        """Enabled cycles from the issue of a last word to its beat."""
        if self.module == "pool":
            return 3
        return 2 + mac_latency(self.simd if self.module == "conv" else 1, self.w_w, self.mode, self.every)

    def parameters(self) -> dict[str, object]:
        names = {name.upper(): value for name, value in vars(self.geometry).items()}
        names |= {"DEPTH": self.depth, "X_W": self.x_w, "X_SIGNED": self.x_signed, "ACC_W": self.acc_w}
        names["PAD"] = f"{self.x_w}'d{self.pad & ((1 << self.x_w) - 1)}"
        if self.module == "conv":
            names |= {"SIMD": self.simd, "PE": self.pe}
        else:
            names |= {"PE" if self.module == "dwconv" else "LANES": self.pe}
            del names["FOLDS"]
        if self.module == "pool":
            del names["REPEAT"]
            return names | {"SUM": self.mode}
        return names | {"W_W": self.w_w, "MODE": self.mode, "STYLE": self.style, "EVERY": self.every}

    def data(self, rng: np.random.Generator, frames: int) -> tuple[Array, Array]:
        """Codes (words, simd) of `frames` images, and weights (groups, repeat, kh, kw, folds, pe, simd)."""
        g = self.geometry
        x = integers(rng, self.x_w, bool(self.x_signed), (frames * g.words, self.simd))
        columns = self.simd if self.module == "conv" else 1
        shape = (g.groups, g.repeat, g.kh, g.kw, g.folds, self.pe, columns)
        return x, integers(rng, self.w_w, self.mode == 0, shape)

    def memory(self, weights: Array) -> str:
        return memory(pack(weights.reshape(self.geometry.period, -1), self.w_w))

    def results(self, x: Array, weights: Array) -> list[int]:
        """The beats that come out, of whole images."""
        g = self.geometry
        images = x.reshape(-1, g.height, g.width, g.groups, g.folds, self.simd)
        below = max(0, (g.out_h - 1) * g.sh + (g.kh - 1) * g.dh + 1 - g.pt - g.height)
        right = max(0, (g.out_w - 1) * g.sw + (g.kw - 1) * g.dw + 1 - g.pl - g.width)
        border = ((0, 0), (g.pt, below), (g.pl, right), (0, 0), (0, 0), (0, 0))
        images = np.pad(images, border, constant_values=self.pad)
        results = np.empty((len(images), g.out_h, g.out_w, g.groups, g.repeat, self.pe), np.int64)
        w = 2 * weights - 1 if self.mode == 1 else weights
        for oy in range(g.out_h):
            rows = oy * g.sh + np.arange(g.kh) * g.dh
            for ox in range(g.out_w):
                columns = ox * g.sw + np.arange(g.kw) * g.dw
                results[:, oy, ox] = self._reduce(images[:, rows][:, :, columns], w)
        return pack(results.reshape(-1, self.pe), self.acc_w)

    def _reduce(self, window: Array, w: Array) -> Array:
        """(frames, kh, kw, groups, folds, simd) to (frames, groups, repeat, pe)."""
        results: Array
        if self.module == "pool":
            results = window.sum(axis=(1, 2)) if self.mode else window.max(axis=(1, 2))
        elif self.module == "dwconv":
            results = np.einsum("nhwgfp,grhwfpo->ngrp", window, w)
        elif self.mode == 2:
            agree = window[:, :, :, :, None, :, None] == w.transpose(2, 3, 0, 1, 4, 5, 6)
            results = agree.sum(axis=(1, 2, 5, 7))
        else:
            results = np.einsum("nhwgfs,grhwfps->ngrp", window, w)
        return results


def simulate_cycles(case: Case, stimuli: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Every cycle's (s_ready, m_valid, beats since reset, words taken up to this reset) after hg_window.

    stimuli: (rst, s_valid, m_ready) of each cycle, the first with rst.
    """
    g = case.geometry
    need = [last + 1 for last in g.newest()]
    keep = g.oldest()
    trace = []
    total = 0
    window = word = accepted_words = beats = start = 0
    pipe = [False] * case.latency
    for rst, s_valid, m_ready in stimuli:
        image, place = divmod(window, g.windows)
        m_valid = pipe[-1]
        en = m_ready or not m_valid
        s_ready = accepted_words - (image * g.words + keep[place]) < case.depth
        trace.append((int(s_ready), int(m_valid), beats, start))
        if rst:
            window = word = accepted_words = beats = 0
            start = total
            pipe = [False] * case.latency
            continue
        issue = en and (word > 0 or accepted_words >= image * g.words + need[place])
        if en:
            beats += m_valid
            pipe = [bool(issue and (word + 1) % g.reduction == 0), *pipe[:-1]]
        if issue:
            word += 1
            if word == g.period:
                window, word = window + 1, 0
        if s_valid and s_ready:
            accepted_words, total = accepted_words + 1, total + 1
    return trace


def random_geometry(rng: np.random.Generator, loops: tuple[int, int, int], beyond: bool) -> Geometry:
    """Small images, at most `loops` groups, folds and repetitions; `beyond`: padding of any size."""

    def axis() -> tuple[int, int, int, int, int, int]:
        size = int(rng.choice([1, 1, 2, 3, 4, 5, 7]))
        kernel, stride, dilation = (
            int(rng.choice(some)) for some in ([1, 1, 2, 3, 3, 4], [1, 1, 2, 3, 5], [1, 1, 2, 3])
        )
        reach = (kernel - 1) * dilation + 1
        pad_before = int(rng.integers(0, reach + 3 if beyond else reach))
        after = max(int(rng.integers(0, reach + 3 if beyond else reach)), reach - size - pad_before)
        return size, kernel, stride, dilation, pad_before, (size + pad_before + after - reach) // stride + 1

    (height, kh, sh, dh, pt, out_h), (width, kw, sw, dw, pl, out_w) = axis(), axis()
    groups, folds, repeat = (int(rng.integers(1, limit + 1)) for limit in loops)
    return Geometry(height, width, kh, kw, sh, sw, dh, dw, pt, pl, out_h, out_w, groups, folds, repeat)


def running(words: Sequence[int]) -> list[int]:
    """The largest one so far."""
    return list(accumulate(words, max))
