"""Named random streams: all randomness of a cell derives from its seed and a stream's name."""

from __future__ import annotations

import zlib

import numpy as np


def named_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the generator of the stream `names` of a cell's `seed`.

    Streams of different names or seeds are independent; the same seed and names always give the
    same numbers. By convention the first name is `init`, `train` or `test`, so training and test
    draws never share a stream. Draws are made on the CPU whatever the device that trains.
    """
    words = tuple(zlib.crc32(name.encode()) for name in names)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=words)))
