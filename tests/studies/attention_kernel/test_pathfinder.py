"""Pathfinder images are what they say: drawn, kept on disk, or read as LRA ships them."""

from __future__ import annotations

import functools
import io
import os
import struct
from itertools import combinations
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from overfit_cli import UserError
from overfit_cli.core.parameters import build
from overfit_cli.studies.attention_kernel import cache as cache_module
from overfit_cli.studies.attention_kernel import images as pictures
from overfit_cli.studies.attention_kernel.classifier_parameters import PathfinderSettings
from overfit_cli.studies.attention_kernel.images import (
    CHUNK,
    DIRECTORIES,
    PathfinderImages,
    images,
    read_lra,
    stream_of,
)
from overfit_cli.studies.attention_kernel.scenes import Scenes, matches
from tests.file_operations import strikes
from tests.studies.attention_kernel import pathfinder_oracle as oracle

pytestmark = pytest.mark.usefixtures("cache")

HARD = PathfinderSettings()
TRAIN = stream_of(0, "train")
SMALL = PathfinderSettings(
    size=18, contour_length=4, distractors=1, distractor_length=2, seed_distance=4, marker_radius=1
)
TINY = PathfinderSettings(
    size=10,
    contour_length=2,
    distractors=0,
    seed_distance=3,
    marker_radius=1,
    distance_tolerance=0.1,
)
"""As in the quick profile of figure 3."""


def replaced(settings: PathfinderSettings, **changes: Any) -> PathfinderSettings:
    return PathfinderSettings.model_validate({**settings.model_dump(), **changes})


MIRRORED = [replaced(settings, matched="places") for settings in (SMALL, TINY)]
EVERY_KIND = pytest.mark.parametrize(
    "settings",
    [HARD, SMALL, TINY, *MIRRORED],
    ids=["hard", "small", "tiny", "small, mirrored", "tiny, mirrored"],
)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Note from which image to which each draw goes."""
    ranges, draw = list[tuple[int, int]](), pictures.draw

    def noted(settings: PathfinderSettings, stream: Any, *span: int) -> PathfinderImages:
        ranges.append((span[0], span[1]))
        return draw(settings, stream, *span)

    monkeypatch.setattr(pictures, "draw", noted)
    return ranges


@functools.cache
def scenes_of(settings: PathfinderSettings) -> Scenes:
    return pictures.chunk_scenes(settings, TRAIN, 0)


def same(first: PathfinderImages, second: PathfinderImages) -> bool:
    pairs = zip(vars(first).values(), vars(second).values(), strict=True)
    return all(np.array_equal(left, right, equal_nan=True) for left, right in pairs)


# What is drawn


def test_an_image_is_the_same_however_many_are_asked_for() -> None:
    def draw(*span: int) -> PathfinderImages:
        return pictures.draw(SMALL, stream_of(3, "train"), *span)

    many = draw(0, 2 * CHUNK)
    assert same(many, draw(0, 2 * CHUNK))
    assert same(many[CHUNK - 2 : CHUNK + 3], draw(CHUNK - 2, CHUNK + 3))
    assert same(many[:1], draw(0, 1))
    assert len(draw(5, 5)) == 0


def test_seeds_and_splits_share_no_image() -> None:
    streams = TRAIN, stream_of(0, "test"), stream_of(1, "train")
    drawings = [pictures.chunk_scenes(SMALL, stream, 0) for stream in streams]
    for first, second in combinations(drawings, 2):
        assert not np.isin(first.paddles.middles, second.paddles.middles).any()


def paddle_contours(settings: PathfinderSettings) -> Any:
    """Return which contour each paddle belongs to, shape (paddles,); 0 and 1 are the targets."""
    targets = np.repeat(np.arange(2), settings.contour_length)
    distractors = np.repeat(np.arange(settings.distractors), settings.distractor_length)
    return np.concatenate([targets, 2 + distractors])


@EVERY_KIND
@pytest.mark.one_in(4)
def test_following_the_gaps_from_disc_to_disc_gives_the_label(settings: PathfinderSettings) -> None:
    scenes = scenes_of(settings)
    sizes = sorted(np.bincount(paddle_contours(settings)).tolist())
    for image in range(8):
        paddles = oracle.paddles_of(settings, scenes, image)
        discs = oracle.discs_of(settings, scenes, image)
        gap = 2 * settings.paddle_margin + 1e-9
        assert oracle.is_connected(paddles, discs, gap) == (scenes.labels[image] == 1)
        assert sorted(map(len, oracle.contours(paddles, gap))) == sizes
    assert 0 < scenes.labels[:8].sum() < 8


@EVERY_KIND
def test_contours_and_discs_keep_clear_of_each_other_and_of_the_edge(
    settings: PathfinderSettings,
) -> None:
    scenes, contour = scenes_of(settings), paddle_contours(settings)
    for image in range(8):
        paddles = oracle.paddles_of(settings, scenes, image)
        for first, second in combinations(range(len(paddles)), 2):
            if contour[first] != contour[second] or second - first > 1:
                assert oracle.distance(paddles[first], paddles[second]) >= settings.clearance
    reach = settings.marker_radius
    assert scenes.distances.min() > 2 * reach
    for along in (scenes.markers.real, scenes.markers.imag):
        assert reach <= along.min()
        assert along.max() <= settings.size - reach


def test_a_larger_continuity_gives_straighter_contours() -> None:
    def mean_turn(continuity: float) -> float:
        settings = replaced(SMALL, size=24, continuity=continuity, distractors=0)
        ways = scenes_of(settings).paddles.directions[:, : settings.contour_length]
        return float(np.abs(np.angle(ways[:, 1:] / ways[:, :-1])).mean())

    assert mean_turn(2.0) < 0.6 * mean_turn(1.0)


def test_pixels_agree_with_the_loop_over_pixels_to_a_grey_level() -> None:
    for settings in (SMALL, replaced(SMALL, antialiasing=3, paddle_thickness=1.0)):
        scenes = scenes_of(settings)
        drawn = pictures.render(settings, scenes)
        shapes = oracle.paddles_of(settings, scenes, 1), oracle.discs_of(settings, scenes, 1)
        slow = oracle.pixels(settings, *shapes, points=settings.antialiasing)
        assert np.abs(drawn[1] - slow).max() <= 1


def test_antialiased_pixels_come_near_to_the_area_that_ink_covers() -> None:
    scenes = scenes_of(SMALL)
    areas = pictures.render(replaced(SMALL, antialiasing=16), scenes).astype(float)
    drawn = pictures.render(SMALL, scenes).astype(float)
    assert np.abs(drawn - areas).mean() < 3
    assert drawn.mean() == pytest.approx(areas.mean(), rel=0.05)


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
        pictures.draw(SMALL, stream, 0, 16 * CHUNK) for stream in (TRAIN, stream_of(0, "test"))
    )
    apart = (np.abs(each.markers[:, 1] - each.markers[:, 0]) for each in (train, test))
    values = next(apart), train.labels, next(apart), test.labels
    assert pictures.accuracy_in_bins(*values) == pytest.approx(0.5, abs=0.03)
    ink = train.pixels.mean(axis=(1, 2)), test.pixels.mean(axis=(1, 2))
    by_ink = pictures.accuracy_in_bins(ink[0], train.labels, ink[1], test.labels)
    assert by_ink == pytest.approx(0.5, abs=0.03)
    assert test.labels.mean() == pytest.approx(0.5, abs=0.03)


def places_of(settings: PathfinderSettings, split: Literal["train", "test"]) -> Any:
    """Discs and labels of some two thousand scenes."""
    chunks = [pictures.chunk_scenes(settings, stream_of(0, split), chunk) for chunk in range(16)]
    places = np.concatenate([scenes.markers for scenes in chunks]).astype(np.complex64)
    return places, np.concatenate([scenes.labels for scenes in chunks])


@pytest.mark.slow
def test_the_discs_places_give_the_label_away_unless_scenes_are_mirrored() -> None:
    """What the distance tells of the label is left: as much as the tolerance lets through."""
    mirrored = replaced(TINY, matched="places")
    (train, labels), (test, truth) = (places_of(TINY, split) for split in ("train", "test"))
    assert pictures.best_accuracy_of_places(train, labels, test, truth) > 0.6
    (train, labels), (test, truth) = (places_of(mirrored, split) for split in ("train", "test"))
    assert pictures.best_accuracy_of_places(train, labels, test, truth) == pytest.approx(
        0.5, abs=0.02
    )
    assert truth.mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.slow
def test_places_have_no_order_and_may_be_unknown_or_of_one_label() -> None:
    random = np.random.default_rng(0)
    places = (random.uniform(0, 10, (600, 2, 2)) @ [1, 1j]).astype(np.complex64)
    assert np.array_equal(pictures.place_features(places), pictures.place_features(places[:, ::-1]))
    above = (places.imag.mean(axis=1) > 5).astype(np.int64)
    accuracy = pictures.best_accuracy_of_places(
        places[:400], above[:400], places[400:, ::-1], above[400:]
    )
    assert accuracy > 0.95
    assert accuracy == pictures.best_accuracy_of_places(
        places[:400], above[:400], places[400:], above[400:]
    )
    ones = np.ones(400, dtype=np.int64)
    alike = pictures.best_accuracy_of_places(places[:400], ones, places[400:], above[400:])
    assert alike == above[400:].mean()
    unknown = np.full((5, 2), np.nan, dtype=np.complex64)
    assert np.isnan(pictures.best_accuracy_of_places(unknown, ones[:5], unknown, ones[:5]))


def test_the_distance_rule_finds_a_shortcut_where_there_is_one() -> None:
    near, far = np.random.default_rng(0).uniform(0, 10, (2, 1000))
    assert pictures.accuracy_in_bins(near, near > 5, far, far > 5) > 0.97
    middle = np.abs(near - 5) < 2, np.abs(far - 5) < 2
    assert pictures.accuracy_in_bins(near, middle[0], far, middle[1]) > 0.9
    assert np.isnan(pictures.accuracy_in_bins([np.nan], [1], [1.0], [1]))


# What can't be drawn


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"distractors": 40}, ["size=32", "40 distractors", "larger size"]),
        ({"size": 9}, ["size=9", "seed_distance 7", "larger size"]),
        ({"size": 600}, ["size=600", "more than 1024 points"]),
        ({"size": 20.5}, ["size=20.5", "a whole number"]),
        ({"contour_length": 1}, ["contour_length=1", "of at least 2"]),
        ({"paddle_length": float("nan")}, ["paddle_length=nan", "a number above 0"]),
        ({"continuity": 0.5}, ["continuity=0.5", "of at least 1"]),
    ],
)
def test_impossible_settings_are_refused_in_a_sentence(
    changes: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        build(PathfinderSettings, changes)
    assert all(word in str(refused.value) for word in words), refused.value


def test_contours_that_hardly_ever_fit_are_given_up() -> None:
    tight = replaced(SMALL, distractors=9)
    with pytest.raises(UserError, match=r"size 18: two contours of 4 paddles .* hardly ever fit"):
        pictures.draw(tight, TRAIN, 0, 1)


# What is kept


def test_a_larger_count_is_drawn_on_from_what_is_kept(drawn: list[tuple[int, int]]) -> None:
    few = images(SMALL, TRAIN, 10)
    more = images(SMALL, TRAIN, CHUNK + 10)
    again = images(SMALL, TRAIN, 2 * CHUNK)
    assert drawn == [(0, CHUNK), (CHUNK, 2 * CHUNK)]
    assert same(few, more[:10])
    assert same(again, pictures.draw(SMALL, TRAIN, 0, 2 * CHUNK))


@pytest.mark.slow
def test_kinds_of_images_are_kept_apart(cache: Path, drawn: list[tuple[int, int]]) -> None:
    images(SMALL, TRAIN, 1)
    images(SMALL, stream_of(0, "test"), 1)
    images(SMALL, stream_of(1, "train"), 1)
    images(replaced(SMALL, continuity=2), TRAIN, 1)
    assert len(drawn) == len(list(cache.rglob("images.npz"))) == 4


def test_a_torn_or_foreign_file_is_drawn_anew(cache: Path, drawn: list[tuple[int, int]]) -> None:
    before = images(SMALL, TRAIN, 4)
    (path,) = cache.rglob("images.npz")
    whole = path.read_bytes()
    middle = len(whole) // 2
    with np.load(path) as file:
        arrays = dict(file)
    foreign, other_key = io.BytesIO(), io.BytesIO()
    np.savez(foreign, **{**arrays, "labels": arrays["labels"][:5]})
    np.savez(other_key, **{**arrays, "key": "x"})
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    harmed = [whole[:middle], b"", flipped, b"not an archive"]
    harmed += [foreign.getvalue(), other_key.getvalue()]
    for content in harmed:
        path.write_bytes(content)
        assert same(images(SMALL, TRAIN, 4), before)
        assert path.read_bytes() == whole
    assert drawn == [(0, CHUNK)] * (1 + len(harmed))


def test_a_cache_that_cannot_be_written_is_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: list[tuple[int, int]]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OVERFIT_CACHE", str(tmp_path / "file" / "cache"))
    assert same(images(SMALL, TRAIN, 4), images(SMALL, TRAIN, 4))
    monkeypatch.setenv("OVERFIT_CACHE", str(tmp_path / "full"))
    no_space = OSError(28, "No space left on device")
    monkeypatch.setattr(cache_module, "write_file", mock.Mock(side_effect=no_space))
    assert len(images(SMALL, TRAIN, 4)) == 4
    assert not list(tmp_path.rglob("*.npz"))
    assert len(drawn) == 3


@pytest.mark.slow
@pytest.mark.unix
def test_what_a_kill_left_in_the_cache_is_cleared_when_the_images_are_kept(cache: Path) -> None:
    cache.mkdir()
    for _ in strikes("kill", cache, lambda: images(SMALL, TRAIN, 4)):
        images(SMALL, TRAIN, 4)
        assert not list(cache.rglob(".part-*"))


# What LRA ships


def write_lra(
    folder: Path, *, as_array: bool = False, files: int = 2, images: int = 3, size: int = 32
) -> Path:
    """Write a small directory of the hard difficulty; grey level 10 k + j, label j mod 2."""
    root = folder / DIRECTORIES["hard"]
    (root / "metadata").mkdir(parents=True)
    for k in [0, 2, 10][:files]:
        (root / "imgs" / str(k)).mkdir(parents=True)
        rows = []
        for j in range(images):
            picture = Image.new("L", (size, size), 10 * k + j)
            picture.save(root / "imgs" / str(k) / f"sample_{j}.png")
            rows.append([f"imgs/{k}", f"sample_{j}.png", str(j), str(j % 2), "1.0", "14"])
        with (root / "metadata" / f"{k}.npy").open("wb") as file:
            if as_array:
                np.save(file, np.array(rows))
            else:
                file.write("".join(" ".join(row) + "\n" for row in rows).encode())
    return root


@pytest.mark.parametrize("as_array", [False, True], ids=["text", "array"])
@pytest.mark.parametrize("above", ["", "pathfinder32", "lra_release/pathfinder32"])
def test_lra_is_read_in_the_order_of_its_files(tmp_path: Path, above: str, as_array: bool) -> None:
    write_lra(tmp_path / above, as_array=as_array, files=3)
    pixels, labels = read_lra(tmp_path, "hard")
    assert pixels.shape == (9, 32, 32)
    assert pixels[:, 5, 5].tolist() == [0, 1, 2, 20, 21, 22, 100, 101, 102]
    assert labels.tolist() == [0, 1, 0] * 3


ROW = b"imgs/0 sample_0.png 0 "
METADATA = [
    (b"imgs/0 sample_0.png 0\n", ["0.npy", "row 1 has 3 columns", "sub-path, file name"]),
    (ROW + b"1 1.0\n\n" + ROW + b"2\n", ["0.npy", "label of row 2 is '2'", "0 or 1"]),
    (b"\xff\xfe\x00", ["0.npy", "neither text nor an array of words"]),
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
@pytest.mark.parametrize(("content", "words"), METADATA)
def test_malformed_metadata_and_images_are_named_in_a_sentence(
    tmp_path: Path, content: bytes, words: list[str]
) -> None:
    root = write_lra(tmp_path)
    Image.new("L", (16, 8)).save(root / "imgs" / "0" / "small.png")
    (root / "imgs" / "0" / "text.png").write_text("text")
    os.mkfifo(root / "imgs" / "0" / "pipe.png")
    with (root / "imgs" / "0" / "large.png").open("wb") as file:
        file.truncate(1 << 40)
    Image.new("1", (10_000, 10_000)).save(root / "imgs" / "0" / "bomb.png")
    (root / "metadata" / "0.npy").write_bytes(content)
    refused(tmp_path, "hard", [str(root), *words])


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("(1000000000000, 4)", "<U9"),
        ("(-1, 4)", "<U9"),
        ("(" * 3000, "<U9"),
        ("(3, 4)", "<f8"),
        ("(3, 4)", "|O"),
    ],
)
def test_a_lying_header_is_named_in_a_sentence(tmp_path: Path, shape: str, kind: str) -> None:
    path = write_lra(tmp_path, as_array=True) / "metadata" / "0.npy"
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(96))
    refused(tmp_path, "hard", [str(path), "neither text nor an array"])
    np.save(path, np.array([["imgs/0", "sample_0.png", 0, 1]], dtype=object))
    refused(tmp_path, "hard", [str(path), "neither text nor an array"])


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
        read_lra(folder, difficulty)
    sentence = str(error.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
