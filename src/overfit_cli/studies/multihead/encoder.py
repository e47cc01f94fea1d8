"""RoBERTa with any number of heads of the same width, from random weights or pretrained ones.

Queries, keys and values have matrices of the same shape for every number of heads; only where they
are cut differs. So one set of weights serves them all. Training is on minibatches of sentences,
with evaluations on the way: the loss is the mean cross-entropy −log softmax(logits)_y, lowered by
AdamW, as in figure 6 of Deora et al. 2024.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import (
    Examples,
    Rows,
    gradient_steps,
    loss_and_accuracy,
    minibatches,
    move_to_device,
    train_with_evaluations,
)
from overfit_cli.core.errors import BadValue, MissingError, UserError
from overfit_cli.core.files import fingerprint, name_data_in_errors
from overfit_cli.core.training import Training, named_rng
from overfit_cli.studies.multihead.parameters import MultiheadSst2Parameters
from overfit_cli.studies.multihead.sentences import END, PAD, START, sst2_folder, sst2_task

P = MultiheadSst2Parameters
CLASSES = 2

PRETRAINED = "roberta-base"
"""The folder of the pretrained model, in the data folder."""

_SIZES = {"d": "hidden_size", "hidden": "intermediate_size", "layers": "num_hidden_layers"}

Tokenize = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""From sentences to their tokens, both ends among them."""


@contextlib.contextmanager
def torch_draws(draws: np.random.Generator, device: str = "cpu") -> Iterator[None]:
    """Seed PyTorch's global generator from a stream inside, and restore it afterwards.

    Third-party code draws from it; on a GPU it draws on the GPU.
    """
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if device == "cuda" else []):
        torch.manual_seed(int(draws.integers(2**63)))
        yield


def build_model(parameters: P, vocabulary: int, seed: int, folder: Path) -> nn.Module:
    """Return the classifier with a seed's initial weights, the same for every number of heads.

    With random weights the vocabulary is the number of different tokens. Of pretrained weights, in
    the data folder, the seed draws those of the last layers alone.
    """
    from transformers import RobertaConfig, RobertaForSequenceClassification

    chosen = {
        "num_attention_heads": parameters.heads,
        "hidden_dropout_prob": parameters.dropout,
        "attention_probs_dropout_prob": parameters.dropout,
        "num_labels": CLASSES,
        "attn_implementation": "eager",
    }
    with torch_draws(named_rng(seed, "init", "weights")):
        if parameters.weights == "pretrained":
            model = _load_pretrained(RobertaForSequenceClassification, folder, **chosen)
        else:
            sizes = {theirs: getattr(parameters, ours) for ours, theirs in _SIZES.items()}
            ends = {"bos_token_id": START, "pad_token_id": PAD, "eos_token_id": END}
            room = {"max_position_embeddings": parameters.tokens + PAD + 1}
            config = RobertaConfig(vocab_size=vocabulary, **room, **ends, **sizes, **chosen)
            model = RobertaForSequenceClassification(config)
    built: nn.Module = model.to(getattr(torch, parameters.dtype))
    return built


def check_pretrained(folder: Path, cells: Sequence[P]) -> dict[str, str]:
    """Read the pretrained model, and return its weights' fingerprint by its name."""
    from transformers import RobertaModel

    pretrained_tokenizer(folder, cells[0].tokens)
    model = _load_pretrained(RobertaModel, folder, add_pooling_layer=False)
    has = {ours: getattr(model.config, theirs) for ours, theirs in _SIZES.items()}
    room = model.config.max_position_embeddings - model.config.pad_token_id - 1
    for cell in cells:
        for name, size in {**has, "tokens": min(room, cell.tokens)}.items():
            if (value := getattr(cell, name)) != size:
                bound = " at most" if name == "tokens" else ""
                raise BadValue(
                    name,
                    value,
                    f"with weights=pretrained, {name} takes{bound} {size}, as "
                    f"{folder / PRETRAINED} has.",
                )
    state = model.state_dict()
    return {PRETRAINED: fingerprint(*(state[name].numpy() for name in sorted(state)))}


@functools.lru_cache(maxsize=2)
def pretrained_tokenizer(folder: Path, tokens: int) -> tuple[Tokenize, int, int]:
    """Return the pretrained model's tokenizer, the size of its vocabulary, and its padding."""
    from transformers import AutoTokenizer

    tokenizer = _load_pretrained(AutoTokenizer, folder)

    def tokenize(texts: Sequence[str]) -> Sequence[Sequence[int]]:
        rows: Sequence[Sequence[int]]
        rows = tokenizer(list(texts), truncation=True, max_length=tokens)["input_ids"]
        return rows

    return tokenize, len(tokenizer), tokenizer.pad_token_id


def _load_pretrained(kind: Any, folder: Path, **options: Any) -> Any:
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model_folder = folder / PRETRAINED
    with name_data_in_errors(folder):
        if not (model_folder / "config.json").is_file():
            raise MissingError(
                f"{folder}: with weights=pretrained it takes the folder {PRETRAINED} with a "
                "RoBERTa as Hugging Face has it (config.json, model.safetensors, tokenizer.json)."
            )
        try:
            return kind.from_pretrained(model_folder, local_files_only=True, **options)
        except Exception as error:  # of many kinds, from several packages
            [reason, *_] = str(error).splitlines() or [type(error).__name__]
            raise UserError(f"{PRETRAINED} can't be read: {reason}") from error


# Training

AT_A_TIME = 64
"""Test sentences that are evaluated together: more are slower, as caches are small."""


def train_cell(cell: Cell[P], training: Training) -> CellResult[P]:
    """Train one cell, with an evaluation every `evaluate_every` steps and after the last one."""
    settings, device = cell.parameters, training.device
    task = sst2_task(settings, cell.seed)
    model = build_model(settings, task.vocabulary, cell.seed, sst2_folder()).to(device)
    rate, decay = settings.learning_rate, settings.weight_decay
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    draws = named_rng(cell.seed, "train", "dropout")

    def loss_of(rows: Rows) -> Tensor:
        model.train()
        batch = task.train.take(rows)
        with torch_draws(draws, device):
            logits = logits_of(model, batch, device)  # (minibatch, 2)
        labels = torch.from_numpy(batch.labels).to(device)  # 0 or 1, (minibatch,)
        return functional.cross_entropy(logits, labels)

    def evaluate() -> dict[str, float]:
        model.eval()
        logits = partial(logits_of, model, device=device)
        loss, accuracy = loss_and_accuracy(logits, task.test, AT_A_TIME)
        return {"test_loss": loss, "test_accuracy": accuracy}

    rows = minibatches(len(task.train.labels), settings.batch_size, cell.seed)
    steps = gradient_steps(optimiser, loss_of, rows)
    length = settings.training_steps, settings.evaluate_every
    course = train_with_evaluations(steps, evaluate, *length, partial(training.log, cell))
    measured = {"shortcut_accuracy": task.shortcut}
    if not course.reason:
        measured |= course.measured() | {"mean_train_loss": course.mean_train_loss()}
    return CellResult(cell, measured, course.steps, course.reason)


def logits_of(model: nn.Module, examples: Examples, device: str) -> Tensor:
    """Return a RoBERTa's logits, shape (sentences, classes)."""
    longest = int(examples.row_lengths.max())  # padding beyond it would only cost time
    cut = Examples(examples.tokens[:, :longest], examples.labels, examples.lengths)
    tokens, _, mask = move_to_device(cut, device)  # tokens and mask: (sentences, longest)
    logits: Tensor = model(input_ids=tokens, attention_mask=mask).logits  # (sentences, 2)
    return logits
