"""Digits in a ring of noise: what is drawn, what is read, and how a cell trains on it."""

from __future__ import annotations

import gzip
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn import functional

from overfit_cli import UserError
from overfit_cli.core.cell import CellResult
from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit import images_data
from overfit_cli.studies.benign_vit.images_engine import AttentionLayer, ImageTransformer
from overfit_cli.studies.benign_vit.images_study import BenignVitImagesParameters, study
from tests.command import run
from tests.training import cell_of, train

TINY = {"n": 40, "test_samples": 20, "d": 16, "hidden": 16, "batch_size": 16, "max_epochs": 200}


IMAGES, LABELS = 0x803, 0x801
"""What IDX files of bytes with three dimensions and with one begin with."""


def tiny(**settings: object) -> BenignVitImagesParameters:
    return BenignVitImagesParameters.model_validate({**TINY, **settings})


def idx(magic: int, shape: tuple[int, ...], content: bytes) -> bytes:
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + content


def write_mnist(folder: Path, splits: dict[str, int], *, zipped: bool = False) -> Path:
    """Images of 28 × 28 whose grey level is their number, labels that count to 9 and again."""
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, count in splits.items():
        pixels = np.repeat(np.arange(count, dtype=np.uint8), 28 * 28).tobytes()
        labels = (np.arange(count) % 10).astype(np.uint8).tobytes()
        for name, content in (
            (f"{prefix}-images-idx3-ubyte", idx(IMAGES, (count, 28, 28), pixels)),
            (f"{prefix}-labels-idx1-ubyte", idx(LABELS, (count,), labels)),
        ):
            path = folder / f"{name}.gz" if zipped else folder / name
            path.write_bytes(gzip.compress(content) if zipped else content)
    return folder


# What is drawn


def test_the_built_in_digits_are_scaled_into_the_middle() -> None:
    drawn = images_data.built_in_digits()
    assert drawn.pixels.shape == (1797, 28, 28)
    assert np.bincount(drawn.labels).min() > 170
    assert not drawn.pixels[:, :4].any()
    assert not drawn.pixels[:, :, -4:].any()
    assert 0 <= drawn.pixels.min() < drawn.pixels.max() <= 1
    small = drawn.pixels[0, 4:-4, 4:-4].reshape(4, 5, 4, 5).mean((1, 3))
    original = load_digits().images[0].reshape(4, 2, 4, 2).mean((1, 3)) / 16
    assert np.corrcoef(small.ravel(), original.ravel())[0, 1] > 0.99


def test_noise_lies_on_the_ring_and_the_shares_make_the_ratio() -> None:
    """Figure 2a: 1/6 of the image and 5/6 of the noise are a ratio of 0.2."""
    clean = images_data.image_task(tiny(snr=1e6), 1).train
    noise = images_data.ring_noise(1, "train", 40)
    assert not noise[:, 4:-4, 4:-4].any()
    assert noise[:, :4].std() == pytest.approx(1, abs=0.02)
    for snr, share in ((0.2, 1 / 6), (2.0, 2 / 3)):
        actual = images_data.image_task(tiny(snr=snr, noise_deviation=0.5), 1).train
        expected = clean.pixels * share + 0.5 * noise * (1 - share)
        np.testing.assert_allclose(actual.pixels, expected, atol=1e-5)


def test_more_samples_extend_fewer_and_training_and_test_images_differ() -> None:
    few, many = images_data.image_task(tiny(n=40), 3), images_data.image_task(tiny(n=60), 3)
    np.testing.assert_array_equal(many.train.pixels[:40], few.train.pixels)
    np.testing.assert_array_equal(many.test.pixels, few.test.pixels)
    whole = images_data.image_task(tiny(n=1400, test_samples=397, snr=1e6), 3)
    pixels = np.concatenate([whole.train.pixels, whole.test.pixels])
    middle = images_data.built_in_digits().pixels.sum((1, 2), dtype=np.float64)
    inside = pixels[:, 4:-4, 4:-4].sum((1, 2), dtype=np.float64)
    np.testing.assert_allclose(np.sort(inside), np.sort(middle), rtol=1e-4, atol=1e-3)
    assert not np.array_equal(images_data.image_task(tiny(), 4).train.pixels, few.train.pixels)


# MNIST's files


def test_mnist_is_read_plain_and_gzipped(tmp_path: Path) -> None:
    plain = images_data.read_mnist(write_mnist(tmp_path / "a", {"train": 30, "t10k": 12}))
    write_mnist(tmp_path / "b" / "mnist", {"t10k": 12}, zipped=True)
    zipped = images_data.read_mnist(tmp_path / "b")
    assert (set(plain), set(zipped)) == ({"train", "test"}, {"test"})
    for split in (plain["test"], zipped["test"]):
        assert split.labels.tolist() == [*range(10), 0, 1]
        assert split.pixels[3, 5, 6] == pytest.approx(3 / 255)


def test_both_splits_are_kept_apart_and_one_is_cut_in_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tiny(source="mnist", n=8, test_samples=4, snr=1e6, noise_deviation=1e-3)
    levels, contents = {}, {}
    for name, splits in (("two", {"train": 12, "t10k": 60}), ("one", {"t10k": 12})):
        monkeypatch.setenv("OVERFIT_DATA", str(write_mnist(tmp_path / name, splits)))
        task = images_data.image_task(asked, 0)
        middles = (split.pixels[:, 14, 14] for split in (task.train, task.test))
        levels[name] = [{*np.rint(255 * middle)} for middle in middles]
        contents[name] = task.collections
    assert contents["one"].keys() == contents["two"].keys() == {"MNIST"}
    assert contents["one"] != contents["two"]
    assert max(levels["two"][0]) < 12
    assert not levels["one"][0] & levels["one"][1]
    monkeypatch.setenv("OVERFIT_DATA", str(tmp_path / "one"))
    with pytest.raises(UserError, match="n=9: with test_samples=4, there are 12 such"):
        study.prepare([cell_of(study, asked.model_copy(update={"n": 9}))])


BROKEN = {
    "magic": idx(0x0000_0D03, (1, 28, 28), bytes(784)),
    "short": idx(IMAGES, (2, 28, 28), bytes(784)),
    "long": idx(IMAGES, (1, 28, 28), bytes(785)),
    "lying": idx(IMAGES, (1 << 31, 1 << 31, 1 << 31), b""),
    "empty": b"",
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_malformed_file_is_one_sentence(tmp_path: Path, kind: str, zipped: bool) -> None:
    path, content = tmp_path / ("images.gz" if zipped else "images"), BROKEN[kind]
    path.write_bytes(gzip.compress(content) if zipped else content)
    sentence = f"images.*: it isn't a whole IDX file .* 3 dimensions; it has {len(content)} bytes."
    with pytest.raises(UserError, match=sentence):
        images_data.read_idx(path, 3)


def test_what_comes_after_the_images_is_never_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten megabytes of zeros behind a small header take no memory."""
    monkeypatch.setattr(images_data, "MOST_BYTES", 10_000)
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx(IMAGES, (1, 28, 28), bytes(10_000_000))))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="it has 10001 bytes"):
            images_data.read_idx(path, 3)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.unix
def test_a_pipe_in_the_place_of_the_images_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train-images-idx3-ubyte")
    with pytest.raises(UserError, match="MNIST isn't there"):
        images_data.read_mnist(tmp_path)


def test_what_is_missing_or_does_not_fit_names_the_flag(tmp_path: Path) -> None:
    data = write_mnist(tmp_path / "data", {"t10k": 6}, zipped=True)
    images, labels = data / "t10k-images-idx3-ubyte.gz", data / "t10k-labels-idx1-ubyte.gz"
    whole = images.read_bytes()
    five, tenth = bytes(5), bytes([1, 2, 3, 4, 5, 10])
    flat = gzip.compress(idx(IMAGES, (6, 20, 28), bytes(6 * 560)))
    asked = ("--set=source=mnist", "--set=test_samples=2", "--n=4", "--data=data")
    for file, content, words in (
        (images, whole[:-9], "t10k-images-idx3-ubyte.gz: it is damaged or can't be read"),
        (labels, gzip.compress(idx(LABELS, (5,), five)), "it has 5 labels for 6 images"),
        (labels, gzip.compress(idx(LABELS, (6,), tenth)), "it has a label 10"),
        (images, flat, "its images are 28 × 20; 28 × 28 is needed"),
        (labels, None, "aren't in the same folder"),
        (images, None, "MNIST isn't there"),
    ):
        images.write_bytes(whole)
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        refused = run("train", "benign-vit-images", *asked, cwd=tmp_path, expect=2).stderr
        assert all(word in " ".join(refused.split()) for word in ("--data", words)), refused


# Training


@pytest.mark.parametrize("normalisation", ["none", "layer"])
def test_attention_is_what_it_says(normalisation: str) -> None:
    """Head by head, as softmax(q kᵀ / √(d/H)) v."""
    torch.manual_seed(0)
    layer, x = AttentionLayer(12, 3, normalisation), torch.randn(2, 5, 12)
    normed = functional.layer_norm(x, (12,)) if normalisation == "layer" else x
    query, key, value = layer.project(normed).chunk(3, dim=-1)
    heads = []
    for head in range(3):
        part = slice(4 * head, 4 * head + 4)
        scores = query[..., part] @ key[..., part].mT / 2
        heads.append(torch.softmax(scores, -1) @ value[..., part])
    expected = x + layer.output(torch.cat(heads, -1))
    torch.testing.assert_close(layer(x), expected)


def test_a_token_is_a_patch_and_weights_come_from_the_seed() -> None:
    model = ImageTransformer(tiny(), 0)
    seen = []
    model.embed.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    pixels = torch.arange(2.0 * 28 * 28).view(2, 28, 28)
    assert model(pixels).shape == (2, 10)
    torch.testing.assert_close(seen[0][1, 9].view(4, 4), pixels[1, 4:8, 8:12])
    again, other = ImageTransformer(tiny(), 0), ImageTransformer(tiny(), 1)
    assert torch.equal(again.embed.weight, model.embed.weight)
    assert not torch.equal(other.embed.weight, model.embed.weight)
    assert float(model.embed.weight.detach().abs().max()) == pytest.approx(1 / 4, rel=0.05)


def test_a_cell_trains_as_a_plain_loop_does() -> None:
    parameters = tiny(dtype="float64", max_epochs=3, epsilon=1e-9)
    result = train(study, cell_of(study, parameters))[0]
    assert (result.status, result.reason, result.steps) == ("failed", "step limit", 9)
    task, model = images_data.image_task(parameters, 0), ImageTransformer(parameters, 0).double()
    x, y = torch.from_numpy(task.train.pixels).double(), torch.from_numpy(task.train.labels)
    optimiser = torch.optim.Adam(model.parameters(), lr=parameters.learning_rate)
    order = named_rng(0, "train", "order")
    for _ in range(3):
        rows = torch.from_numpy(order.permutation(40))
        for first in (0, 16, 32):
            chosen = rows[first : first + 16]
            optimiser.zero_grad()
            torch.autograd.backward(functional.cross_entropy(model(x[chosen]), y[chosen]))
            optimiser.step()
    with torch.no_grad():
        expected = functional.cross_entropy(model(x), y).item()
        test = model(torch.from_numpy(task.test.pixels).double())
        wrong = (test.argmax(1).numpy() != task.test.labels).mean()
    assert result.measurements["train_loss"] == pytest.approx(expected, rel=1e-9)
    assert result.measurements["test_error"] == pytest.approx(wrong)


@pytest.mark.slow
def test_a_cell_ends_when_it_is_fitted() -> None:
    def result(**settings: object) -> CellResult[Any]:
        cell = cell_of(study, tiny(epsilon=0.5, **settings))
        return train(study, cell, trajectories=True)[0]

    fitted = result()
    epochs = int(fitted.measurements["epochs"])
    assert (fitted.status, fitted.reason, fitted.steps) == ("done", "", 3 * epochs)
    assert fitted.measurements["train_loss"] <= 0.5
    assert "Fitted to a training loss of 0.4" in study.summary(fitted)
    assert fitted.trajectory["step"][-1] == fitted.steps
    assert result(max_epochs=epochs).status == "done", "fitted in its last pass"
    assert result(max_epochs=epochs - 1).reason == "step limit"
