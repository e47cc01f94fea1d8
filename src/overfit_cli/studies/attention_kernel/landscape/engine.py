"""Trained networks, and the loss on a plane through one of them (section 5.2 of Song et al. 2024).

A network is trained in two stages: with softmax, then with the kernel. Kernels and pairs of
directions share the first stage, and pairs the second. The network after each stage is kept in the
cache folder, so that no stage is trained twice, nor again after a kill.

The plane has one direction in W_Q and one in W_K of the first layer. Only that layer's queries and
keys change over the plane, and they change linearly: q = q₀ + a q₁, k = k₀ + b k₁. So what comes
before them is computed once, and many points go through the rest of the network together. The
surface of a cell is L(W_Q + a d₁, W_K + b d₂): the mean cross-entropy on a fixed batch at points
(a, b) around the network (figure 4).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import Examples, Task, minibatches, move_to_device
from overfit_cli.core.files import cache_folder, fingerprint, lock_folder, write_file
from overfit_cli.core.training import Training, failure, named_rng
from overfit_cli.studies.attention_kernel.classifier import (
    Layer,
    Transformer,
    build_model,
    evaluate,
    key_mask,
    training_steps,
)
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.landscape.theory import Floats, Losses, measure_landscape

P = KernelLandscapeParameters
NETWORK_VERSION = 1
"""Raised whenever the same parameters and seed would give another network."""

FILE = "network.pt"

MOST_TOKENS = {"cpu": 2**11, "cuda": 2**21}
"""The most tokens, over points and samples, that go through the network together.

On a CPU their arrays fit the cache. With twice as many, sizes were measured at which a loop over
points is faster.
"""

_SURFACE = {"pair", "directions", "points", "spacing", "loss_samples"}
_SECOND_STAGE = {"kernel", "second_steps"}
Network = TypeVar("Network", bound=torch.nn.Module)


def trained_network(parameters: P, task: Task, seed: int, stage: int, device: str) -> Transformer:
    """Return the network after a stage, 1 or 2, from the cache folder if it is there."""
    kernel = "softmax" if stage == 1 else parameters.kernel
    of_stage = parameters.model_copy(update={"kernel": kernel})
    return train_once(
        lambda: build_model(of_stage, task, seed, device),
        lambda model: _train_stage(model, parameters, task, seed, stage, device),
        _network_name(parameters, seed, stage, data_fingerprint(task)),
        device,
    )


def _train_stage(
    model: Transformer, parameters: P, task: Task, seed: int, stage: int, device: str
) -> None:
    first, steps = 0, parameters.training_steps
    if stage == 2:
        first_network = trained_network(parameters, task, seed, 1, device)
        model.load_state_dict(first_network.state_dict())
        model.dropout.restart(named_rng(seed, "train", "dropout", "second stage"))
        first, steps = parameters.training_steps, parameters.second_steps
    batches = minibatches(len(task.train.labels), parameters.batch_size, seed)
    rows = itertools.islice(batches, first, first + steps)
    for _ in training_steps(model, parameters, task.train, rows, device):
        pass


@functools.lru_cache(maxsize=2)
def data_fingerprint(task: Task) -> str:
    """Return a name for the training samples: folders of one name may hold different ones."""
    arrays = (task.train.tokens, task.train.labels, task.train.lengths)
    return fingerprint(*(array for array in arrays if array is not None))


def _network_name(parameters: P, seed: int, stage: int, data: str) -> str:
    left_out = _SURFACE | (_SECOND_STAGE if stage == 1 else set())
    text = parameters.model_dump_json(exclude=left_out)
    identity = f"{NETWORK_VERSION}/{stage}/{seed}/{data}/{text}"
    return hashlib.sha256(identity.encode()).hexdigest()[:24]


def train_once(
    build: Callable[[], Network], train: Callable[[Network], None], name: str, device: str
) -> Network:
    """Return a trained network, from the cache folder if it is there.

    A process that needs the same network meanwhile waits for it instead of training it too. The
    name is another one for whatever gives other weights; their last bits depend on the device too.
    """
    folder = cache_folder() / "networks" / f"{name}-{device}"
    model = build()
    with contextlib.ExitStack() as stack:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_folder(folder))
        if not _load(model, folder / FILE, device):
            model = build()  # what failed to load may have changed some of the weights
            train(model)
            with suppress(OSError):
                _save(model, folder / FILE)
    return model


def _load(model: torch.nn.Module, file: Path, device: str) -> bool:
    with suppress(Exception):
        state = torch.load(io.BytesIO(file.read_bytes()), map_location=device, weights_only=True)
        model.load_state_dict(state)
        return True
    return False


def _save(model: torch.nn.Module, file: Path) -> None:
    content = io.BytesIO()
    torch.save(model.state_dict(), content)
    write_file(file, content.getvalue())


@dataclass(frozen=True)
class Directions:
    """Directions d₁ and d₂ of the plane: in the first layer's W_Q and in its W_K, each (d, d)."""

    query: Tensor
    key: Tensor


def draw_directions(model: Transformer, kind: str, seed: int, pair: int) -> Directions:
    """Draw a seed's pair of directions in the first layer's W_Q and W_K.

    They are standard normal (`raw`); for `filter` each output's row has the length of the weights'
    row (Li et al. 2018, section 4).
    """
    layer = cast("Layer", model.layers[0])

    def draw(name: str, W: Tensor) -> Tensor:
        """Return d with N(0, 1) entries; for `filter`, row by row d_r ‖W_r‖ / ‖d_r‖; (d, d)."""
        numbers = named_rng(seed, "directions", str(pair), name).standard_normal(W.shape)  # (d, d)
        direction = torch.from_numpy(numbers).to(W)  # (d, d)
        if kind == "raw":
            return direction
        lengths = W.norm(dim=1, keepdim=True) / direction.norm(dim=1, keepdim=True)  # (d, 1)
        scaled: Tensor = direction * lengths
        return scaled

    with torch.inference_mode():
        return Directions(draw("query", layer.query.weight), draw("key", layer.key.weight))


class Plane:
    """The loss of a fixed batch as a function of two numbers, L(W_Q + a d₁, W_K + b d₂).

    With z the normalised input of the first layer, q = z (W_Q + a d₁)ᵀ = q₀ + a q₁ with q₁ = z d₁ᵀ,
    and k = k₀ + b k₁ with k₁ = z d₂ᵀ. The batch has tokens and a mask of those that aren't padding,
    (samples, tokens), and labels, (samples,). The network at the centre isn't changed.
    """

    def __init__(
        self,
        model: Transformer,
        directions: Directions,
        tokens: Tensor,
        labels: Tensor,
        mask: Tensor | None,
    ) -> None:
        self._model, self._labels, self._mask = model.eval(), labels, mask
        layer = cast("Layer", model.layers[0])
        with torch.inference_mode():
            self._input = model.embed(tokens)  # (samples, tokens, d)
            z = layer.attention_norm(self._input)  # (samples, tokens, d)
            # q₀, k₀, v, q₁ and k₁, each (samples, heads, tokens, width)
            self._q0 = layer.in_heads(layer.query(z))
            self._k0 = layer.in_heads(layer.key(z))
            self._v = layer.in_heads(layer.value(z))
            self._q1 = layer.in_heads(z @ directions.query.mT)
            self._k1 = layer.in_heads(z @ directions.key.mT)

    def losses(self, points: Tensor) -> Tensor:
        """Return the loss at points (points, 2), shape (points,)."""
        samples, length = self._input.shape[:2]
        limit = MOST_TOKENS[points.device.type]
        batch = max(1, limit // (samples * length))  # points
        rows = max(1, limit // length)  # samples, where a point is split
        with torch.inference_mode():
            parts = [self._mean_losses(part, rows) for part in torch.split(points, batch)]
        return torch.cat(parts)  # (points,)

    def _mean_losses(self, points: Tensor, rows: int) -> Tensor:
        """Return the mean loss at a few points, (points,), with `rows` samples at a time."""
        total = points.new_zeros(len(points))  # (points,)
        for first in range(0, len(self._labels), rows):
            total += self._summed_losses(points, slice(first, first + rows))
        return total / len(self._labels)

    def _summed_losses(self, points: Tensor, rows: slice) -> Tensor:
        """Return the loss summed over some of the samples, (points,)."""
        a, b = points[:, :, None, None, None, None].unbind(1)  # each (points, 1, 1, 1, 1)
        mask = None if self._mask is None else self._mask[rows]  # (samples, tokens)
        keys = key_mask(mask)  # (samples, 1, 1, tokens)
        first, *rest = (cast("Layer", layer) for layer in self._model.layers)
        x = first.finish(
            self._input[rows].expand(len(points), -1, -1, -1),  # (points, samples, tokens, d)
            self._q0[rows] + a * self._q1[rows],  # q, (points, samples, heads, tokens, width)
            self._k0[rows] + b * self._k1[rows],  # k, (points, samples, heads, tokens, width)
            self._v[rows],  # (samples, heads, tokens, width)
            keys,
        )  # (points, samples, tokens, d)
        for layer in rest:
            x = layer(x, keys)  # (points, samples, tokens, d)
        logits = self._model.classes(self._model.read_out(x, mask))  # (points, samples, classes)
        labels = self._labels[rows].expand(len(points), -1)  # (points, samples)
        losses = functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="none"
        )  # −log softmax(logits)_y, (points · samples,)
        return losses.view(len(points), -1).sum(1)  # (points,)


def train_cell(cell: Cell[P], task: Task, training: Training) -> CellResult[P]:
    """Train a cell's network, evaluate the surface around it, and measure its roughness."""
    parameters, device = cell.parameters, training.device
    training.say("Training the network, which is kept in the cache")
    model = trained_network(parameters, task, cell.seed, 2, device)
    batch = fixed_batch(parameters, task, cell.seed)
    centre = evaluate(model, batch, device).loss
    steps = parameters.training_steps + parameters.second_steps
    if reason := failure(centre):
        return CellResult(cell, {}, steps, reason)
    training.say("Evaluating the loss around it")
    name = f"{cell.key}-{data_fingerprint(task)}-{device}.npz"
    losses = losses_around(model, cell, batch, device)
    points = parameters.points, parameters.spacing
    measured = measure_landscape(losses, points, centre, cell, training, name)
    return CellResult(cell, measured, steps)


def fixed_batch(parameters: P, task: Task, seed: int) -> Examples:
    """Return the training samples on which the loss is taken, the same at every point."""
    order = named_rng(seed, "loss batch").permutation(len(task.train.labels))  # (samples,)
    return task.train.take(order[: parameters.loss_samples])


def losses_around(model: Transformer, cell: Cell[P], batch: Examples, device: str) -> Losses:
    """Return the function that evaluates L(W_Q + a d₁, W_K + b d₂) at points (a, b)."""
    parameters = cell.parameters
    directions = draw_directions(model, parameters.directions, cell.seed, parameters.pair)
    plane = Plane(model, directions, *move_to_device(batch, device))
    dtype = getattr(torch, parameters.dtype)

    def losses(points: Floats) -> Floats:
        at_points = torch.from_numpy(points).to(device, dtype)  # (points, 2)
        return plane.losses(at_points).to("cpu", torch.float64).numpy()  # (points,)

    return losses
