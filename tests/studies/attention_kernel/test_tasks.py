"""The data of `kernel-text` and `kernel-pathfinder`, and refusals where it isn't there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overfit_cli import UserError
from overfit_cli.core.parameters import Value
from overfit_cli.studies.attention_kernel import images
from overfit_cli.studies.attention_kernel.classifier_parameters import (
    KernelPathfinderParameters,
    KernelTextParameters,
)
from overfit_cli.studies.attention_kernel.classifiers import pathfinder, text
from overfit_cli.studies.attention_kernel.images import pathfinder_task
from overfit_cli.studies.attention_kernel.reviews import (
    ReviewSettings,
    bag_of_words_accuracy,
    generated_reviews,
    stream_of,
    text_task,
)
from tests.studies.attention_kernel.test_pathfinder import write_lra
from tests.studies.attention_kernel.test_reviews import REVIEWS, write_folder
from tests.studies.test_every_study import PIXELS
from tests.training import cell_of, train

SMALL: dict[str, Value] = {**PIXELS, "n": 6, "test_samples": 3}
TINY = {"d": 8, "hidden": 6, "batch_size": 4, "training_steps": 2, "evaluate_every": 1}
TINY_LRA: dict[str, Value] = {"source": "lra", "size": 8, "n": 5, "test_samples": 3}
TINY_IMDB: dict[str, Value] = {"source": "imdb", "tokens": 16, "n": 4, "test_samples": 3}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """Where data may go; neither a user's cache nor a user's data are there."""
    monkeypatch.setenv("OVERFIT_DATA", str(tmp_path))
    monkeypatch.setattr(images, "CHUNK", 16)  # of them are drawn at a time
    return tmp_path


def of_text(**values: Value) -> KernelTextParameters:
    return KernelTextParameters.model_validate(values)


def of_pathfinder(**values: Value) -> KernelPathfinderParameters:
    return KernelPathfinderParameters.model_validate(SMALL | values)


# Text


def test_generated_reviews_fill_a_task() -> None:
    parameters = of_text(tokens=20, n=30, test_samples=10, negated=0.5)
    task = text_task(parameters, 3)
    settings = ReviewSettings(length=20, vocabulary=64, negated=0.5)
    train = generated_reviews(settings, stream_of(3, "train"), 30)
    test = generated_reviews(settings, stream_of(3, "test"), 10)
    assert (task.vocabulary, task.train.lengths) == (64, None)
    assert np.array_equal(task.train.tokens, train.tokens)
    assert np.array_equal(task.test.labels, test.labels)
    assert task.shortcut == bag_of_words_accuracy(train, test, 64)
    assert text.sample_length(parameters) == 20
    assert text.prepare([cell_of(text, {"tokens": 20})]) == {}


def test_imdbs_reviews_come_in_a_seeds_order_with_their_lengths(elsewhere: Path) -> None:
    write_folder(elsewhere / "aclImdb", REVIEWS)
    few, all_of_them = (text_task(of_text(**TINY_IMDB | {"n": n}), 0) for n in (2, 5))
    assert np.array_equal(few.train.tokens, all_of_them.train.tokens[:2])
    assert sorted(all_of_them.train.labels) == [0, 0, 0, 1, 1]
    assert all_of_them.train.lengths is not None
    whole = sorted(len(REVIEWS[name]) for name in REVIEWS if name.startswith("train"))
    assert sorted(all_of_them.train.lengths) == [min(length, 16) for length in whole]
    assert all_of_them.vocabulary == 257
    orders = [text_task(of_text(**TINY_IMDB), seed).test.tokens for seed in range(6)]
    assert not all(np.array_equal(order, orders[0]) for order in orders)


def test_more_reviews_than_the_folder_has_are_refused_before_a_sweep(elsewhere: Path) -> None:
    write_folder(elsewhere / "aclImdb", REVIEWS)
    fine = cell_of(text, TINY_IMDB)
    text.prepare([fine])
    for name, count, there in (("n", 6, 5), ("test_samples", 4, 3)):
        with pytest.raises(UserError, match=f"{name}={count}: .* has {there} such reviews"):
            text.prepare([fine, cell_of(text, TINY_IMDB | {name: count})])


def test_another_data_folder_is_read_in_one_process_too_and_its_content_is_told_apart(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = {**REVIEWS, "test/pos/0_10.txt": b"Oh yes"}
    contents, tokens = [], []
    for name, files in (("ours", REVIEWS), ("same", REVIEWS), ("theirs", theirs)):
        monkeypatch.setenv("OVERFIT_DATA", str(write_folder(elsewhere / name, files)))
        contents.append(text.prepare([cell_of(text, TINY_IMDB)]))
        tokens.append(text_task(of_text(**TINY_IMDB), 0).test.tokens)
    assert contents[0] == contents[1] != contents[2]
    assert not np.array_equal(tokens[0], tokens[2])


# Pathfinder


def test_an_image_is_a_sequence_of_its_pixels() -> None:
    parameters = of_pathfinder()
    task = pathfinder_task(parameters, 0)
    assert (task.train.tokens.shape, task.test.tokens.shape) == ((6, 144), (3, 144))
    assert (task.vocabulary, task.train.tokens.max()) == (256, 255)
    assert task.train.lengths is None
    assert set(task.train.labels.tolist()) <= {0, 1}
    assert 0 <= task.shortcut <= 1
    assert pathfinder.sample_length(parameters) == 144
    more = pathfinder_task(of_pathfinder(n=9), 0)
    assert np.array_equal(more.train.tokens[:6], task.train.tokens)
    other = pathfinder_task(parameters, 1)
    assert not np.array_equal(other.train.tokens, task.train.tokens)


def test_a_cell_trains_on_either_source(elsewhere: Path) -> None:
    write_folder(elsewhere / "aclImdb", REVIEWS)
    write_lra(elsewhere, images=8, size=8, files=1)
    cells = [cell_of(pathfinder, TINY | values) for values in (SMALL, TINY_LRA)]
    pathfinder.prepare(cells)
    drawn, read = train(pathfinder, *cells)
    [review] = train(text, cell_of(text, TINY | TINY_IMDB))
    assert drawn.status == read.status == review.status == "done"
    assert "shortcut_accuracy" in drawn.measurements
    assert "shortcut_accuracy" not in read.measurements  # LRA doesn't say where the discs are.


def test_lras_images_are_split_into_training_and_test_images(elsewhere: Path) -> None:
    write_lra(elsewhere, images=8, size=8, files=1)

    def numbers(n: int, seed: int = 0) -> tuple[list[int], list[int]]:
        task = pathfinder_task(of_pathfinder(**TINY_LRA | {"n": n}), seed)
        assert np.array_equal(task.train.labels, task.train.tokens[:, 0] % 2)
        return task.train.tokens[:, 0].tolist(), task.test.tokens[:, 0].tolist()

    train, test = numbers(5)
    assert sorted(train + test) == list(range(8))
    fewer, same = numbers(2)
    assert (fewer, same) == (train[:2], test)
    assert numbers(5, seed=1) != (train, test)
    with pytest.raises(UserError, match="n=6: with test_samples=3, LRA's directory has 8 images"):
        pathfinder.prepare([cell_of(pathfinder, TINY_LRA | {"n": 6})])
