"""SST-2 is read as published, and RoBERTas of every number of heads start and train alike."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import nn

from overfit_cli import UserError
from overfit_cli.core.cell import Cell
from overfit_cli.core.classification import Course
from overfit_cli.studies.multihead.encoder import PRETRAINED, build_model, logits_of
from overfit_cli.studies.multihead.parameters import MultiheadSst2Parameters
from overfit_cli.studies.multihead.sentences import (
    END,
    PAD,
    START,
    UNKNOWN,
    known_words,
    pad_rows,
    read_sst2,
    sst2_task,
    word_counts_accuracy,
)
from overfit_cli.studies.multihead.study import sst2 as study
from tests.command import run
from tests.training import cell_of, train

TRAIN = ["a dull film", "a fine film", "dull and long", "fine , and short", "so fine", "so dull"]
DEV = ["a fine story", "long and dull", "fine", "dull"]
LABELS = [0, 1, 0, 1, 1, 0]
TINY: dict[str, Any] = {"n": 6, "test_samples": 4, "d": 8, "hidden": 6, "tokens": 8, "heads": 2}
TINY |= {"batch_size": 3, "training_steps": 4, "evaluate_every": 2}


def in_words(**changed: Any) -> list[str]:
    """The settings of a tiny cell, as words of a command."""
    return [f"--set={name}={value}" for name, value in {**TINY, **changed}.items()]


def rows(texts: Sequence[str], labels: Sequence[int]) -> str:
    return "".join(f"{label}\t{text}\n" for text, label in zip(texts, labels, strict=True))


TSV = {
    "train.tsv": "label\tsentence\n" + rows(TRAIN, LABELS),
    "dev.tsv": "label\tcontent\n" + rows(DEV, [1, 0, 1, 0]),
}


def write(folder: Path, **changed: str) -> Path:
    """Write the TSV files; a keyword `train` or `dev` replaces a file's content."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in TSV.items():
        (folder / name).write_text(changed.get(name.removesuffix(".tsv"), content))
    return folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with SST-2 in it, which the variable names."""
    write(tmp_path / "data" / "sst2")
    monkeypatch.setenv("OVERFIT_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def settings(**values: Any) -> MultiheadSst2Parameters:
    return MultiheadSst2Parameters.model_validate({**TINY, "dtype": "float64", **values})


def cell(seed: int = 0, **values: Any) -> Cell[MultiheadSst2Parameters]:
    return cell_of(study, settings(**values), seed)


# Data


@pytest.mark.parametrize("inside", ["", "sst2", "SST-2", "data"])
def test_sentences_are_read_from_tsv_files_in_their_order(tmp_path: Path, inside: str) -> None:
    """Their columns come in any order with others between; quotes are words."""
    write(tmp_path / inside)
    train, test = read_sst2(tmp_path)
    assert train.texts == tuple(TRAIN)
    assert train.labels.tolist() == LABELS
    assert (test.texts, test.labels.tolist()) == (tuple(DEV), [1, 0, 1, 0])
    write(tmp_path / inside, dev='sentence\tidx\tlabel\r\n" what ?\t7\t1\r\nno "\t8\t0')
    _, test = read_sst2(tmp_path)
    assert (test.texts, test.labels.tolist()) == (('" what ?', 'no "'), [1, 0])


def test_parquet_files_of_several_parts_give_the_same(tmp_path: Path) -> None:
    columns = {"idx": range(6), "sentence": [f"{text} " for text in TRAIN], "label": LABELS}
    whole = pd.DataFrame(columns)
    (tmp_path / "data").mkdir()
    for part, frame in enumerate((whole[:4], whole[4:])):
        frame.to_parquet(tmp_path / "data" / f"train-{part:05}-of-00002.parquet")
    whole[:2].to_parquet(tmp_path / "data" / "validation-00000-of-00001.parquet")
    train, test = read_sst2(tmp_path)
    assert (train.texts, train.labels.tolist()) == (tuple(TRAIN), LABELS)
    assert test.texts == tuple(TRAIN[:2])


MALFORMED = {
    "label\tsentence\n1\tfine\nx\tdull\n": "dev.tsv, row 2: it has the label 'x' and",
    "label\tsentence\n1\tso\tfine\n": "row 1: it has the label 'so'",
    "label\tsentence\n1\tfine\n1\tso\tfine\n": "dev.tsv: it isn't a whole .tsv file",
    "label\tsentence\n\n1\tfine\n": "row 1: it has the label '' and the sentence ''",
    "label\tsentence\n1\t \n": "row 1: .* the sentence ''",
    "1\tfine\n": "its columns are 1, fine; it takes label, and sentence or content",
    "label\tsentence\n": "SST-2's split dev has no sentences",
    "": "dev.tsv: it isn't a whole .tsv file",
}


@pytest.mark.parametrize("dev", MALFORMED)
def test_a_malformed_row_is_named_with_its_file_and_line(tmp_path: Path, dev: str) -> None:
    write(tmp_path, dev=dev)
    with pytest.raises(UserError, match=MALFORMED[dev]):
        read_sst2(tmp_path)


@pytest.mark.unix
def test_files_that_are_missing_or_of_another_kind_are_named(tmp_path: Path) -> None:
    def refused(words: str) -> None:
        with pytest.raises(UserError, match=words):
            read_sst2(tmp_path)

    refused(r"split train isn't there; name a folder that has")
    write(tmp_path)
    (tmp_path / "dev.tsv").write_bytes(b"label\tsentence\n1\tfine\n0\t\xff\n")
    refused(r"dev.tsv: it isn't a whole .tsv file")
    (tmp_path / "dev.tsv").unlink()
    (tmp_path / "validation.parquet").write_bytes(b"PAR1 and no more")
    refused(r"validation.parquet: it isn't a whole .parquet file")
    frame = pd.DataFrame({"sentence": ["fine", None], "label": [1, 0]})
    frame.to_parquet(tmp_path / "validation.parquet")
    refused(r"validation.parquet, row 2: .* the sentence ''")
    (tmp_path / "train.tsv").unlink()
    os.mkfifo(tmp_path / "train.tsv")
    refused(r"train.tsv: it can't be read")


def test_the_most_frequent_words_are_known_and_the_rest_is_one_token(data: Path) -> None:
    assert (START, PAD, END, UNKNOWN) == (0, 1, 2, 3)
    vocabulary = known_words(TRAIN, 3)
    assert vocabulary == {"dull": 4, "fine": 5, "a": 6}
    task = sst2_task(settings(vocabulary=3, tokens=5), 0)
    assert task.vocabulary == 7
    actual = dict(zip(map(tuple, task.test.tokens.tolist()), task.test.labels, strict=True))
    assert actual == {
        (START, 6, 5, UNKNOWN, END): 1,
        (START, UNKNOWN, UNKNOWN, 4, END): 0,
        (START, 5, END, PAD, PAD): 1,
        (START, 4, END, PAD, PAD): 0,
    }
    cut = sst2_task(settings(tokens=4), 0)
    assert cut.train.tokens.shape == (6, 4)
    assert (cut.train.tokens[cut.train.row_lengths == 4, -1] == END).all()


def test_sentences_come_in_a_seeds_order_and_more_extend_fewer(data: Path) -> None:
    few, every = (sst2_task(settings(n=n), 0).train for n in (3, 6))
    assert np.array_equal(few.tokens, every.tokens[:3])
    assert sorted(every.labels) == sorted(LABELS)
    orders = [sst2_task(settings(), seed).train.tokens.tolist() for seed in range(4)]
    assert orders[0] != orders[1]


def test_counting_words_finds_the_word_that_says_it_all() -> None:
    draws = np.random.default_rng(0)
    texts = [draws.integers(0, 30, draws.integers(3, 9)).tolist() for _ in range(300)]
    labels = draws.integers(0, 2, 300)
    told = [[*text, 30 + label] for text, label in zip(texts, labels, strict=True)]
    for sentences, least, limit in ((told, 1.0, 1.0), (texts, 0.3, 0.7)):
        train, test = (pad_rows(part, 31) for part in (sentences[:200], sentences[200:]))
        actual = word_counts_accuracy(train, labels[:200], test, labels[200:], 32)
        assert least <= actual <= limit


# What is missing


@pytest.mark.slow
def test_what_is_missing_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(words: str, *data: str, **changed: Any) -> None:
        asked = ("sweep", "multihead-sst2", "--out", "out", *data, *in_words(**changed))
        lines = run(*asked, cwd=tmp_path, expect=2).stderr
        assert lines.count("\n") <= 4
        assert not [each for each in words.split(" … ") if each not in " ".join(lines.split())]
        assert not (tmp_path / "out").exists()

    write(tmp_path / "data")
    refused("--set test_samples 5: … has 4 test sentences", "--data=data", test_samples=5)
    needs = f"it takes the folder {PRETRAINED} with a RoBERTa"
    refused(needs, "--data=data", weights="pretrained")
    monkeypatch.setitem(sys.modules, "transformers", None)
    refused("needs the package transformers … pip install '.[text]'", "--data=data")


# The model


def built(heads: int, seed: int = 0, **values: Any) -> nn.Module:
    pytest.importorskip("transformers")
    return build_model(settings(heads=heads, **values), 30, seed, Path())


def softmax_heads(
    x: NDArray[np.float64], length: int, weights: Mapping[str, NDArray[np.float64]], heads: int
) -> NDArray[np.float64]:
    """One sentence's attention, a head at a time: (tokens, d) to the same."""
    query, key, value = (
        x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        for name in ("query", "key", "value")
    )
    mixed = []
    for part in np.split(np.arange(x.shape[1]), heads):
        scores = query[:, part] @ key[:length, part].T / math.sqrt(len(part))
        mixed.append(softmax(scores, axis=1) @ value[:length, part])
    return np.hstack(mixed)


@pytest.mark.slow
@pytest.mark.parametrize("heads", [1, 2, 8])
def test_attention_of_h_heads_is_the_softmax_written_out(data: Path, heads: int) -> None:
    model = built(heads).eval()
    draws = torch.Generator().manual_seed(1)
    for values in model.parameters():  # all weights matter, the biases too
        noise = torch.randn(values.shape, generator=draws, dtype=values.dtype)
        values.data.add_(noise, alpha=0.5)
    attention = model.get_submodule("roberta.encoder.layer.1.attention.self")
    seen: list[Any] = []
    attention.register_forward_hook(lambda _, inputs, output: seen.extend((inputs[0], output[0])))
    samples = sst2_task(settings(), 0).test
    with torch.no_grad():
        logits_of(model, samples, "cpu")
    weights = {name: item.numpy() for name, item in attention.state_dict().items()}
    for x, mixed, length in zip(seen[0].numpy(), seen[1].numpy(), samples.row_lengths, strict=True):
        expected = softmax_heads(x, int(length), weights, heads)
        assert mixed == pytest.approx(expected, abs=1e-10)


# Training


@pytest.mark.slow
def test_a_training_learns_the_word_that_says_it_all(data: Path) -> None:
    pytest.importorskip("transformers")
    sample_cell = cell(learning_rate=0.01, training_steps=60, evaluate_every=10, batch_size=6)
    [result] = train(study, sample_cell, trajectories=True)
    got = result.measurements
    assert (got["test_accuracy"], got["shortcut_accuracy"]) == (1, 1)
    assert got["mean_train_loss"] == pytest.approx(np.mean(result.trajectory["train_loss"][1:]))
    said = "Test accuracy 100.0 % after 60 steps; counting words has 100.0 %."
    assert study.summary(result) == said


def test_a_course_averages_over_steps_whatever_lies_between_evaluations() -> None:
    course = Course(
        {
            0: {"train_loss": math.nan, "test_loss": 0.7, "test_accuracy": 0.5},
            4: {"train_loss": 0.6, "test_loss": 0.5, "test_accuracy": 0.9},
            5: {"train_loss": 0.3, "test_loss": 0.5, "test_accuracy": 0.8},
        },
        5,
    )
    assert course.mean_train_loss() == pytest.approx((4 * 0.6 + 0.3) / 5)
    assert course.measured()["mean_test_loss"] == pytest.approx((4 * 0.6 + 0.5) / 5)
    assert course.measured()["best_accuracy"] == 0.9


# Pretrained weights


def save_pretrained(folder: Path) -> None:
    """A RoBERTa of width 8 with its tokenizer, as Hugging Face saves them."""
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

    words = ["<s>", "<pad>", "</s>", "<unk>", *sorted({w for text in TRAIN for w in text.split()})]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    ends = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), words, strict=False))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends).save_pretrained(folder)
    sizes = {"hidden_size": 8, "intermediate_size": 6, "max_position_embeddings": 20}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2}
    config = RobertaConfig(vocab_size=len(words), **sizes, **layers)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        RobertaForMaskedLM(config).save_pretrained(folder)


@pytest.mark.slow
def test_pretrained_weights_are_trained_with_any_number_of_heads(
    data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_pretrained(data / PRETRAINED)
    capfd.readouterr()
    asked: dict[str, Any] = {"weights": "pretrained", "dropout": 0.0}
    cells = [cell(heads=heads, **asked) for heads in (1, 4)]
    read = study.prepare(cells)
    assert read.keys() == {"SST-2", PRETRAINED}
    left, right = train(study, *cells)
    assert (left.status, right.status) == ("done", "done")
    assert left.measurements["test_loss"] != right.measurements["test_loss"]
    models = [
        build_model(settings(heads=h, **asked), 0, s, data) for h, s in ((1, 0), (4, 0), (1, 1))
    ]
    first, heads, seed = (model.state_dict() for model in models)
    assert all(torch.equal(heads[name], first[name]) for name in first)
    differ = {name.split(".")[0] for name in first if not torch.equal(seed[name], first[name])}
    assert differ == {"classifier"}
    assert capfd.readouterr() == ("", "")
    save_pretrained(data / PRETRAINED)
    assert study.prepare(cells) == read


@pytest.mark.slow
def test_other_sizes_than_the_pretrained_model_has_and_damaged_weights_are_refused(
    data: Path,
) -> None:
    save_pretrained(data / PRETRAINED)
    for name, value, words in (
        ("hidden", 7, "hidden takes 6, as"),
        ("layers", 1, "layers takes 2, as"),
        ("tokens", 30, "tokens takes at most 18, as"),
    ):
        with pytest.raises(UserError, match=f"{name}={value}: with weights=pretrained, {words}"):
            study.prepare([cell(weights="pretrained", **{name: value})])
    (data / PRETRAINED / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=f"{PRETRAINED} can't be read: "):
        study.prepare([cell(weights="pretrained")])
