"""Pathfinder images are what they say: drawn, kept on disk, or read as LRA ships them."""

from __future__ import annotations

import functools
import os
import struct
from itertools import combinations
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np
import pytest
from PIL import Image
from scipy.sparse.csgraph import connected_components

from overfit_cli import UserError
from overfit_cli.core.parameters import Value
from overfit_cli.studies.attention_kernel import images as pictures
from overfit_cli.studies.attention_kernel.classifier_parameters import (
    KernelPathfinderParameters,
    PathfinderSettings,
)
from overfit_cli.studies.attention_kernel.classifiers import pathfinder
from overfit_cli.studies.attention_kernel.images import (
    CHUNK,
    PathfinderImages,
    images,
    pathfinder_task,
    stream_of,
)
from overfit_cli.studies.attention_kernel.scenes import Scenes, matches
from tests.studies.attention_kernel.pathfinder_oracle import (
    discs_of,
    distances,
    nearest,
    paddles_of,
    pixels,
)
from tests.studies.test_every_study import PIXELS
from tests.training import cell_of

pytestmark = pytest.mark.usefixtures("cache")

HARD = PathfinderSettings()
TRAIN = stream_of(0, "train")
SMALL = PathfinderSettings(
    size=18, contour_length=4, distractors=1, distractor_length=2, seed_distance=4, marker_radius=1
)


def replaced(settings: PathfinderSettings, **changes: Any) -> PathfinderSettings:
    return PathfinderSettings.model_validate({**settings.model_dump(), **changes})


TINY = replaced(
    SMALL, size=10, contour_length=2, distractors=0, seed_distance=3, distance_tolerance=0.1
)
"""As in the quick profile of figure 3."""
MIRRORED = [replaced(settings, matched="places") for settings in (SMALL, TINY)]
EVERY_KIND = pytest.mark.parametrize("settings", [SMALL, TINY, HARD, *MIRRORED])


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """Note each draw, of a few images at a time."""
    monkeypatch.setattr(pictures, "CHUNK", 8)
    noted = mock.Mock(wraps=pictures.draw)
    monkeypatch.setattr(pictures, "draw", noted)
    return noted


@functools.cache
def scenes_of(settings: PathfinderSettings) -> Scenes:
    return pictures.chunk_scenes(settings, TRAIN, 0)


def same(first: PathfinderImages, second: PathfinderImages) -> bool:
    pairs = zip(vars(first).values(), vars(second).values(), strict=True)
    return all(np.array_equal(left, right, equal_nan=True) for left, right in pairs)


# What is drawn


def test_an_image_is_the_same_however_many_are_asked_for(drawn: mock.Mock) -> None:
    draw = functools.partial(drawn, SMALL, stream_of(3, "train"))
    many = draw(0, 16)
    assert same(many, draw(0, 16))
    assert same(many[6:11], draw(6, 11))
    assert same(many[:1], draw(0, 1))
    assert len(draw(5, 5)) == 0


def test_seeds_and_splits_share_no_image() -> None:
    streams = TRAIN, stream_of(0, "test"), stream_of(1, "train")
    drawings = [pictures.chunk_scenes(SMALL, stream, 0) for stream in streams]
    for first, second in combinations(drawings, 2):
        assert not np.isin(first.paddles.middles, second.paddles.middles).any()


@EVERY_KIND
@pytest.mark.one_in(5)
def test_following_the_gaps_from_disc_to_disc_gives_the_label_and_contours_keep_clear(
    settings: PathfinderSettings,
) -> None:
    targets = np.repeat([0, 1], settings.contour_length)
    distractors = np.repeat(np.arange(settings.distractors), settings.distractor_length)
    contour = np.concatenate([targets, 2 + distractors])  # of each paddle
    place, gap = np.arange(len(contour)), 2 * settings.paddle_margin + 1e-9
    apart = (contour[:, None] != contour) | (np.abs(place[:, None] - place) > 1)
    scenes = scenes_of(settings)
    for image in range(4):
        paddles = paddles_of(settings, scenes, image)
        away = distances(paddles)
        assert away[apart].min() >= settings.clearance
        _, found = connected_components(away <= gap)
        assert sorted(np.bincount(found)) == sorted(np.bincount(contour))
        first, second = found[nearest(paddles, scenes.markers[image])]
        assert (first == second) == (scenes.labels[image] == 1)
    assert 0 < scenes.labels[:4].sum() < 4


@EVERY_KIND
def test_discs_keep_clear_of_each_other_and_of_the_edge(settings: PathfinderSettings) -> None:
    scenes, reach = scenes_of(settings), settings.marker_radius
    assert scenes.distances.min() > 2 * reach
    places = np.stack([scenes.markers.real, scenes.markers.imag])
    assert reach <= places.min() and places.max() <= settings.size - reach


def test_pixels_agree_with_the_loop_over_pixels_to_a_grey_level() -> None:
    for settings in (SMALL, replaced(SMALL, antialiasing=3, paddle_thickness=1.0)):
        scenes = scenes_of(settings)
        drawn = pictures.render(settings, scenes)
        shapes = paddles_of(settings, scenes, 1), discs_of(settings, scenes, 1)
        slow = pixels(settings, *shapes, points=settings.antialiasing)
        assert np.abs(drawn[1] - slow).max() <= 1


# What gives nothing away


def test_every_image_could_have_had_the_other_label_at_the_same_distance() -> None:
    for settings in (HARD, SMALL, *MIRRORED):
        scenes = scenes_of(settings)
        targets = scenes.paddles.take(np.s_[:, : 2 * settings.contour_length])
        assert matches(settings, targets).any(axis=(1, 2)).all()
    assert SMALL.distance_tolerance <= 0.5


@pytest.mark.slow
def test_neither_the_distance_nor_the_ink_gives_the_label_away() -> None:
    train, test = (
        pictures.draw(SMALL, stream, 0, 8 * CHUNK) for stream in (TRAIN, stream_of(0, "test"))
    )
    apart = (np.abs(each.markers[:, 1] - each.markers[:, 0]) for each in (train, test))
    values = next(apart), train.labels, next(apart), test.labels
    assert pictures.accuracy_in_bins(*values) == pytest.approx(0.5, abs=0.04)
    ink = train.pixels.mean(axis=(1, 2)), test.pixels.mean(axis=(1, 2))
    by_ink = pictures.accuracy_in_bins(ink[0], train.labels, ink[1], test.labels)
    assert by_ink == pytest.approx(0.5, abs=0.04)
    assert test.labels.mean() == pytest.approx(0.5, abs=0.04)


def accuracy_of_places(settings: PathfinderSettings) -> float:
    """Of the best rule on some hundred scenes of each split."""

    def places(split: Literal["train", "test"]) -> tuple[Any, Any]:
        chunks = [pictures.chunk_scenes(settings, stream_of(0, split), each) for each in range(6)]
        centres = np.concatenate([scenes.markers for scenes in chunks])
        return centres.astype(np.complex64), np.concatenate([scenes.labels for scenes in chunks])

    test, labels = places("test")
    assert labels.mean() == pytest.approx(0.5, abs=0.04)
    return pictures.best_accuracy_of_places(*places("train"), test, labels)


@pytest.mark.slow
def test_the_discs_places_give_the_label_away_unless_scenes_are_mirrored() -> None:
    """What the distance tells of the label is left: as much as the tolerance lets through."""
    assert accuracy_of_places(TINY) > 0.6
    assert accuracy_of_places(MIRRORED[1]) == pytest.approx(0.5, abs=0.04)


@pytest.mark.slow
def test_places_have_no_order_and_may_be_unknown_or_of_one_label() -> None:
    random = np.random.default_rng(0)
    places = (random.uniform(0, 10, (600, 2, 2)) @ [1, 1j]).astype(np.complex64)
    assert np.array_equal(pictures.place_features(places), pictures.place_features(places[:, ::-1]))
    above = (places.imag.mean(axis=1) > 5).astype(np.int64)
    accuracy, test, truth = pictures.best_accuracy_of_places, places[400:], above[400:]
    known = accuracy(places[:400], above[:400], test, truth)
    assert known == accuracy(places[:400], above[:400], test[:, ::-1], truth) > 0.95
    ones = np.ones(400, dtype=np.int64)
    assert accuracy(places[:400], ones, test, truth) == truth.mean()
    unknown = np.full((5, 2), np.nan, dtype=np.complex64)
    assert np.isnan(accuracy(unknown, ones[:5], unknown, ones[:5]))


def test_the_distance_rule_finds_a_shortcut_where_there_is_one() -> None:
    near, far = np.random.default_rng(0).uniform(0, 10, (2, 1000))
    assert pictures.accuracy_in_bins(near, near > 5, far, far > 5) > 0.97
    middle = np.abs(near - 5) < 2, np.abs(far - 5) < 2
    assert pictures.accuracy_in_bins(near, middle[0], far, middle[1]) > 0.9
    assert np.isnan(pictures.accuracy_in_bins([np.nan], [1], [1.0], [1]))


# What can't be drawn


def test_contours_that_hardly_ever_fit_are_given_up() -> None:
    tight = replaced(SMALL, distractors=9)
    with pytest.raises(UserError, match=r"size 18: two contours of 4 paddles .* hardly ever fit"):
        pictures.draw(tight, TRAIN, 0, 1)


# What is kept


def test_a_larger_count_is_drawn_on_from_what_is_kept(drawn: mock.Mock) -> None:
    few, more, again = (images(SMALL, TRAIN, count) for count in (5, 13, 16))
    assert [call.args[2:] for call in drawn.call_args_list] == [(0, 8), (8, 16)]
    assert same(few, more[:5])
    assert same(again, pictures.draw(SMALL, TRAIN, 0, 16))


def test_kinds_of_images_are_kept_apart(cache: Path, drawn: mock.Mock) -> None:
    for stream in (TRAIN, stream_of(0, "test"), stream_of(1, "train")):
        images(SMALL, stream, 1)
    images(replaced(SMALL, continuity=2), TRAIN, 1)
    assert drawn.call_count == len(list(cache.rglob("images.npz"))) == 4


def test_a_torn_or_foreign_file_is_drawn_anew(cache: Path, drawn: mock.Mock) -> None:
    before = images(SMALL, TRAIN, 4)
    (path,) = cache.rglob("images.npz")
    whole = path.read_bytes()
    middle = len(whole) // 2
    with np.load(path) as file:
        arrays = dict(file)
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    harmed = [whole[:middle], b"", flipped, b"not an archive"]
    for change in ({"labels": arrays["labels"][:5]}, {"key": np.array("x")}):
        np.savez(path, **{**arrays, **change})
        harmed.append(path.read_bytes())
    for content in harmed:
        path.write_bytes(content)
        assert same(images(SMALL, TRAIN, 4), before)
        assert path.read_bytes() == whole
    assert drawn.call_count == 1 + len(harmed)


# What LRA ships


def write_lra(
    folder: Path, *, as_array: bool = False, files: int = 2, images: int = 3, size: int = 32
) -> Path:
    """Write a small directory of the hard difficulty; grey level 10 k + j, label j mod 2."""
    root = folder / pictures.DIRECTORIES["hard"]
    (root / "metadata").mkdir(parents=True)
    for k in [0, 2, 10][:files]:
        (root / "imgs" / str(k)).mkdir(parents=True)
        rows = []
        for j in range(images):
            picture = Image.new("L", (size, size), 10 * k + j)
            picture.save(root / "imgs" / str(k) / f"sample_{j}.png")
            rows.append([f"imgs/{k}", f"sample_{j}.png", str(j), str(j % 2), "1.0", "14"])
        metadata = root / "metadata" / f"{k}.npy"
        if as_array:
            np.save(metadata, rows)
        else:
            metadata.write_text("".join(" ".join(row) + "\n" for row in rows))
    return root


@pytest.mark.parametrize("as_array", [False, True], ids=["text", "array"])
@pytest.mark.parametrize("above", ["", "pathfinder32", "lra_release/pathfinder32"])
def test_lra_is_read_in_the_order_of_its_files(tmp_path: Path, above: str, as_array: bool) -> None:
    write_lra(tmp_path / above, as_array=as_array, files=3)
    pixels, labels = pictures.read_lra(tmp_path, "hard")
    assert pixels.shape == (9, 32, 32)
    assert pixels[:, 5, 5].tolist() == [0, 1, 2, 20, 21, 22, 100, 101, 102]
    assert labels.tolist() == [0, 1, 0] * 3


def lying(kind: str, shape: str) -> bytes:
    """An array of words whose header says this."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(96)


ROW, LIES = b"imgs/0 sample_0.png 0 ", ("(1000000000000, 4)", "(-1, 4)", "(" * 3000)
NO_WORDS = [b"\xff\xfe\x00", *map(lying, ("<U9", "|O") * 3, LIES * 2)]
METADATA = [
    (b"imgs/0 sample_0.png 0\n", ["0.npy", "row 1 has 3 columns", "sub-path, file name"]),
    (ROW + b"1 1.0\n\n" + ROW + b"2\n", ["0.npy", "label of row 2 is '2'", "0 or 1"]),
    *((content, ["0.npy", "neither text nor an array of words"]) for content in NO_WORDS),
    (b"imgs/0 sample_7.png 7 1\n", ["sample_7.png", "no such image"]),
    (b"imgs/0 small.png 0 1\n", ["small.png", "16 × 8 pixels", "32 × 32 is needed"]),
    (b"imgs/0 /etc/passwd 0 1\n", ["0.npy", "row 1 names '/etc/passwd'", "inside"]),
    (b"imgs/../../.. secret.png 0 1\n", ["0.npy", "imgs/../../../secret.png", "no .. in"]),
    (b"imgs/0 pipe.png 0 1\n", ["pipe.png", "can't be read as an image"]),
    (b"imgs/0 large.png 0 1\n", ["large.png", "can't be read as an image"]),
    (b"imgs/0 bomb.png 0 1\n", ["bomb.png", "10000 × 10000 pixels", "32 × 32 is needed"]),
    (b"imgs/0 text.png 0 1\n", ["text.png", "can't be read as an image", "PNG"]),
]


@pytest.mark.unix
def test_malformed_metadata_and_images_are_named_in_a_sentence(tmp_path: Path) -> None:
    root = write_lra(tmp_path)
    Image.new("L", (16, 8)).save(root / "imgs" / "0" / "small.png")
    (root / "imgs" / "0" / "text.png").write_text("text")
    os.mkfifo(root / "imgs" / "0" / "pipe.png")
    with (root / "imgs" / "0" / "large.png").open("wb") as file:
        file.truncate(1 << 40)
    Image.new("1", (10_000, 10_000)).save(root / "imgs" / "0" / "bomb.png")
    for content, words in METADATA:
        (root / "metadata" / "0.npy").write_bytes(content)
        refused(tmp_path, "hard", [str(root), *words])


def test_metadata_without_end_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_lra(tmp_path)
    monkeypatch.setattr(pictures, "MOST_IMAGES", 4)
    refused(tmp_path, "hard", [str(root), "over 4 images"])
    with (root / "metadata" / "0.npy").open("wb") as file:
        file.truncate(1 << 40)
    refused(tmp_path, "hard", [str(root), "0.npy", "more than 16777216 bytes"])


def test_missing_directories_are_named_in_a_sentence(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "hard", ["nowhere", "curv_contour_length_14", "curv_baseline"])
    refused(tmp_path, "hard", [str(tmp_path), "curv_contour_length_14", "pathfinder32"])
    root = write_lra(tmp_path)
    refused(tmp_path, "easy", [str(tmp_path), "curv_baseline"])
    for path in (root / "metadata").iterdir():
        path.unlink()
    refused(tmp_path, "hard", [str(root / "metadata"), "no metadata there"])


def refused(folder: Path, difficulty: str, words: list[str]) -> None:
    with pytest.raises(UserError) as error:
        pictures.read_lra(folder, difficulty)
    sentence = str(error.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")


# Tasks

TASK: dict[str, Value] = {**PIXELS, "n": 6, "test_samples": 3}
LRA: dict[str, Value] = {"source": "lra", "size": 8, "n": 5, "test_samples": 3}


def of_pathfinder(**values: Value) -> KernelPathfinderParameters:
    return KernelPathfinderParameters.model_validate(TASK | values)


@pytest.mark.usefixtures("drawn")
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


def test_lras_images_are_split_into_training_and_test_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They don't say where the discs are."""
    monkeypatch.setenv("OVERFIT_DATA", str(tmp_path))
    write_lra(tmp_path, images=8, size=8, files=1)

    def numbers(n: int, seed: int = 0) -> tuple[list[int], list[int]]:
        task = pathfinder_task(of_pathfinder(**LRA | {"n": n}), seed)
        assert np.array_equal(task.train.labels, task.train.tokens[:, 0] % 2)
        assert np.isnan(task.shortcut)
        return task.train.tokens[:, 0].tolist(), task.test.tokens[:, 0].tolist()

    train, test = numbers(5)
    assert sorted(train + test) == list(range(8))
    fewer, same = numbers(2)
    assert (fewer, same) == (train[:2], test)
    assert numbers(5, seed=1) != (train, test)
    with pytest.raises(UserError, match="n=6: with test_samples=3, LRA's directory has 8 images"):
        pathfinder.prepare([cell_of(pathfinder, LRA | {"n": 6})])
