"""The names of the three networks."""

from __future__ import annotations

from typing import Literal

Activation = Literal["softmax", "exp", "relu"]

NAMES: dict[Activation, str] = {"softmax": "softmax", "exp": "exp", "relu": "ReLU"}
"""What each is called in sentences and legends."""
