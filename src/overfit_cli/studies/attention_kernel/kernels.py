"""Attention kernels, by name (Song et al. 2024, section 4.2.1).

Besides the paper's two there are controls, which separate the causes of a difference: a Gaussian
whose rows sum to one, a softmax as large as a sum of n terms, and a Gaussian as small as a mean of
them. Naming them needs no torch; `attention.py` computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KernelName = Literal[
    "softmax",
    "gaussian",
    "gaussian-eq11",
    "gaussian-normalised",
    "softmax-times-n",
    "gaussian-over-n",
]


@dataclass(frozen=True)
class Kernel:
    """What sets a kernel apart.

    Attributes:
        distance: the c of scores C = −c ‖q − k‖² / √d; None for inner products, C = q·k / √d.
        normalised: whether exp(C) is divided by its sum over keys.
        power_of_n: the power of the number of tokens that multiplies the result.
    """

    distance: float | None
    normalised: bool
    power_of_n: int = 0

    def scale(self, tokens: int) -> float:
        """Return what multiplies the attention to `tokens` tokens."""
        return float(tokens) ** self.power_of_n


KERNELS: dict[str, Kernel] = {
    "softmax": Kernel(distance=None, normalised=True),
    "gaussian": Kernel(distance=0.5, normalised=False),
    "gaussian-eq11": Kernel(distance=1.0, normalised=False),
    "gaussian-normalised": Kernel(distance=0.5, normalised=True),
    "softmax-times-n": Kernel(distance=None, normalised=True, power_of_n=1),
    "gaussian-over-n": Kernel(distance=0.5, normalised=False, power_of_n=-1),
}
"""By name; `gaussian` is section 4.2.1's and the appendix's, `gaussian-eq11` equation (11)'s."""
