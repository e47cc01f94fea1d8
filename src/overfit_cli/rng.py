"""Named random streams: all randomness of a cell derives from its seed and a stream's name."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator

import numpy as np


def named_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the generator of the stream `names` of a cell's `seed`.

    Streams of different names or seeds are independent; the same seed and names always give the
    same numbers. By convention the first name is `init`, `train` or `test`, so training and test
    draws never share a stream. Draws are made on the CPU whatever the device that trains.
    """
    words = tuple(zlib.crc32(name.encode()) for name in names)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=words)))


@contextlib.contextmanager
def torch_draws(draws: np.random.Generator, device: str = "cpu") -> Iterator[None]:
    """Have PyTorch's one generator draw from a stream inside, and outside as it would have.

    It is for code of others that draws from that generator. On a GPU draws are made there.
    """
    import torch

    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if device == "cuda" else []):
        torch.manual_seed(int(draws.integers(2**63)))
        yield
