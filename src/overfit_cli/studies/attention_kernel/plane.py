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

import functools
import hashlib
import io
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import Examples, Task, minibatches, move_to_device
from overfit_cli.core.files import cache_folder, fingerprint
from overfit_cli.core.training import Training, failure, named_rng
from overfit_cli.studies.attention_kernel.cache import alone_in, keep, keep_arrays, read_arrays
from overfit_cli.studies.attention_kernel.classifier import (
    Layer,
    Transformer,
    build_model,
    evaluate,
    key_mask,
    training_steps,
)
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelLandscapeParameters

P = KernelLandscapeParameters
NETWORK_VERSION = 1
"""Raised whenever the same parameters and seed would give another network."""

FILE = "network.pt"

MOST_TOKENS = {"cpu": 2**11, "cuda": 2**21}
"""The most tokens, over points and samples, that go through the network together.

On a CPU their arrays fit the cache. With twice as many, sizes were measured at which a loop over
points is faster.
"""

SAVED_EVERY = 5.0
"""Seconds between two saves of a surface: about how much work a kill may cost."""

BLOCK = 64
"""Points that are evaluated between two looks at the clock."""

_SURFACE = {"pair", "directions", "points", "spacing", "loss_samples"}
_SECOND_STAGE = {"kernel", "second_steps"}


def train_cell(cell: Cell[P], task: Task, training: Training) -> CellResult[P]:
    """Train a cell's network, evaluate the surface around it, and measure its roughness.

    The surface is logged point by point in place of steps.
    """
    p, device = cell.parameters, training.device
    training.say("Training the network, which is kept in the cache")
    model = trained_network(p, task, cell.seed, 2, device)
    batch = fixed_batch(p, task, cell.seed)
    centre = evaluate(model, batch, device)["test_loss"]
    steps = p.training_steps + p.second_steps
    if reason := failure(centre):
        return CellResult(cell, {}, steps, reason)
    training.say("Evaluating the loss around it")
    directions = draw_directions(model, p.directions, cell.seed, p.pair)
    plane = Plane(model, directions, *move_to_device(batch, device))

    def losses(points: Floats) -> Floats:
        at_points = torch.from_numpy(points).to(device, getattr(torch, p.dtype))  # (points, 2)
        return plane.losses(at_points).to("cpu", torch.float64).numpy()  # (points,)

    points = grid(offsets(p.points, p.spacing))  # (points · points, 2)
    name = f"{cell.key}-{data_fingerprint(task)}-{device}.npz"
    surface = evaluated(losses, points, cache_folder() / "surfaces" / name)
    for step, (a, b, loss) in enumerate(np.column_stack([points, surface]).tolist()):
        training.log(cell, step, {"a": a, "b": b, "loss": loss})
    square = surface.reshape(p.points, p.points)
    measured = {
        "rms_laplacian": rms_laplacian(square, p.spacing),
        "interior_minima": interior_minima(square),
        "centre_loss": centre,
    }
    return CellResult(cell, measured, steps)


# Networks


def trained_network(parameters: P, task: Task, seed: int, stage: int, device: str) -> Transformer:
    """Return the network after a stage, 1 or 2, from the cache folder if it is there.

    A process that needs the same network meanwhile waits for it instead of training it too.
    """
    kernel = "softmax" if stage == 1 else parameters.kernel
    of_stage = parameters.model_copy(update={"kernel": kernel})
    build = functools.partial(build_model, of_stage, task, seed, device)
    left_out = _SURFACE | (_SECOND_STAGE if stage == 1 else set())
    text = parameters.model_dump_json(exclude=left_out)
    identity = f"{NETWORK_VERSION}/{stage}/{seed}/{data_fingerprint(task)}/{text}"
    name = hashlib.sha256(identity.encode()).hexdigest()[:24]
    # last bits depend on the device too
    file = cache_folder() / "networks" / f"{name}-{device}" / FILE
    with alone_in(file.parent):
        if (model := _kept(build(), file, device)) is None:
            model = build()  # what failed to load may have changed some of the weights
            _train_stage(model, parameters, task, seed, stage, device)
            content = io.BytesIO()
            torch.save(model.state_dict(), content)
            keep(file, content.getvalue())
    return model


def _kept(model: Transformer, file: Path, device: str) -> Transformer | None:
    with suppress(Exception):
        state = torch.load(io.BytesIO(file.read_bytes()), map_location=device, weights_only=True)
        model.load_state_dict(state)
        return model
    return None


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


def fixed_batch(parameters: P, task: Task, seed: int) -> Examples:
    """Return the training samples on which the loss is taken, the same at every point."""
    order = named_rng(seed, "loss batch").permutation(len(task.train.labels))  # (samples,)
    return task.train.take(order[: parameters.loss_samples])


# The plane


class Directions(NamedTuple):
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
        logits = self._model.read_out(x, mask)  # (points, samples, classes)
        labels = self._labels[rows].expand(len(points), -1)  # (points, samples)
        losses = functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="none"
        )  # −log softmax(logits)_y, (points · samples,)
        return losses.view(len(points), -1).sum(1)  # (points,)


# The surface


def offsets(points: int, spacing: float) -> Floats:
    """Return where the points lie along a direction: spacing · (r − points/2), r = 1, 2, ..."""
    return spacing * (np.arange(1, points + 1, dtype=np.float64) - points // 2)


def grid(steps: Floats) -> Floats:
    """Return all points of the plane whose coordinates are among `steps`, (points · points, 2)."""
    return np.stack(np.meshgrid(steps, steps, indexing="ij"), -1).reshape(-1, 2)


def evaluated(losses: Callable[[Floats], Floats], points: Floats, file: Path) -> Floats:
    """Return the losses at points (points, 2), shape (points,).

    They are saved to a file meanwhile, so that a kill costs little; at the end it is removed.
    """
    known = read_arrays(file).get("losses", np.zeros(0))
    saved = time.monotonic()
    while len(known) < len(points):
        known = np.concatenate([known, losses(points[len(known) :][:BLOCK])])
        if time.monotonic() - saved > SAVED_EVERY:
            keep_arrays(file, losses=known)
            saved = time.monotonic()
    with suppress(OSError):
        file.unlink()
    return known


def interior_minima(surface: Floats) -> int:
    """Return the number of points off the edge that are below all of their eight neighbours."""
    rows, columns = surface.shape
    centre = surface[1:-1, 1:-1]
    lower = np.ones(centre.shape, dtype=bool)  # off the edge, (rows − 2, columns − 2)
    for row, column in itertools.product(range(3), range(3)):
        if (row, column) != (1, 1):
            lower &= centre < surface[row : rows - 2 + row, column : columns - 2 + column]
    return int(lower.sum())


def rms_laplacian(surface: Floats, spacing: float) -> float:
    """Return the root mean square of the discrete Laplacian, height per squared unit of length."""
    centre = surface[1:-1, 1:-1]
    neighbours = surface[:-2, 1:-1] + surface[2:, 1:-1] + surface[1:-1, :-2] + surface[1:-1, 2:]
    return float(np.sqrt(np.mean(np.square((neighbours - 4 * centre) / spacing**2))))
