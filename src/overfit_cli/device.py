"""Choice of the device. PyTorch is imported only where there may be a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from overfit_cli.errors import UserError

Device = Literal["auto", "cpu", "cuda"]


def resolve_device(asked: Device, *, here: bool = True) -> Literal["cpu", "cuda"]:
    """Return the device for `asked`; `auto` is a GPU where there is one.

    Args:
        asked: what `--device` says.
        here: whether this machine trains; of another one only that is known what is asked for.

    Raises:
        UserError: if `cuda` is asked for and there is none.
    """
    if not here:
        return "cuda" if asked == "cuda" else "cpu"
    if asked == "cpu" or (asked == "auto" and not _may_have_gpu()):
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        raise UserError(
            "--device cuda: PyTorch finds no CUDA device here; --device takes auto, cpu, or cuda "
            "on a machine with an NVIDIA GPU and a CUDA build of PyTorch."
        )
    return "cpu"


def _may_have_gpu() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
