"""Weights kept in the cache folder, so that nothing is trained twice, nor again after a kill."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch

from overfit_cli.core.files import cache_folder, locked, write_whole

FILE = "network.pt"
Network = TypeVar("Network", bound=torch.nn.Module)


def trained_once(
    build: Callable[[], Network], train: Callable[[Network], None], name: str, device: str
) -> Network:
    """Return a trained network, from the cache folder if it is there.

    Whoever needs the same network meanwhile waits for it instead of training it too.

    Args:
        build: makes the network, untrained.
        train: trains it in place.
        name: the network's; another one for whatever gives other weights.
        device: where it is trained; the last bits of its weights depend on it.
    """
    folder = cache_folder() / "networks" / f"{name}-{device}"
    model = build()
    with contextlib.ExitStack() as stack:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
        if not _load(model, folder / FILE, device):
            model = build()  # what failed to load may have changed some of the weights
            train(model)
            with suppress(OSError):
                _save(model, folder / FILE)
    return model


def _load(model: torch.nn.Module, file: Path, device: str) -> bool:
    """Load the kept weights, and say whether there are any: a damaged file counts as none."""
    with suppress(Exception):
        kept = torch.load(io.BytesIO(file.read_bytes()), map_location=device, weights_only=True)
        model.load_state_dict(kept)
        return True
    return False


def _save(model: torch.nn.Module, file: Path) -> None:
    content = io.BytesIO()
    torch.save(model.state_dict(), content)
    write_whole(file, content.getvalue())
