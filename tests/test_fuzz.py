"""Random input is read, or refused in a sentence: ranges, laws, presets, manifests and figures.

`OVERFIT_FUZZ=100000 pytest tests/test_fuzz.py` searches at length, among examples that are drawn
anew; `--hypothesis-seed=NUMBER` draws those of this seed again.
"""

from __future__ import annotations

import functools
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overfit_cli import UserError
from overfit_cli.core.files import MANIFEST
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import escape_markdown, is_text, visible
from overfit_cli.figures.draw import read_record
from overfit_cli.figures.picture import file_content
from overfit_cli.figures.style import look_of_record
from overfit_cli.report.sides import read_published
from overfit_cli.studies.benign_vit.study import study as benign_vit
from overfit_cli.sweeps.grid import MOST_VALUES, parse_range, parse_seeds
from overfit_cli.sweeps.manifest import Manifest
from overfit_cli.sweeps.presets import find_preset
from overfit_cli.sweeps.store import RunDirectory
from tests.command import SEARCH
from tests.fake_study import law_of
from tests.recorded_picture import COMPARED, RECORD, picture, with_text
from tests.toy_runs import TOY

pytestmark = [pytest.mark.slow] if SEARCH else []

Taken = TypeVar("Taken")

fuzz = settings(
    max_examples=int(SEARCH or 40),
    derandomize=not SEARCH,  # the same examples each time, unless it is a search
    database=None,
    print_blob=bool(SEARCH),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

numbers = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{0,30})?(e-?[0-9]{1,20})?", fullmatch=True),
    st.sampled_from(["9" * 5000, "1e999999999", "-0", "nan", "inf", "", " ", "1_0", "\uff12"]),
)
ranges = st.one_of(
    st.lists(numbers, min_size=1, max_size=5).map(":".join),
    st.lists(numbers, min_size=1, max_size=5).map(",".join),
    st.tuples(numbers, numbers, numbers, st.sampled_from(["log", "linear", "x"])).map(":".join),
    st.text(alphabet="0123456789:,.e-+ logx", max_size=20),
    st.text(max_size=10),
)


def taken(read: Callable[[], Taken], of: Path | str = "") -> Taken | None:
    """What is read, with or without a warning; None of what is refused, in a plain sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return read()
    except UserError as error:
        sentence = str(error)
        assert sentence.startswith(str(of))
        assert sentence.endswith((".", "?")), sentence
        assert len(sentence) < 1000
        visible(sentence).encode()
        return None


@pytest.mark.slow
@fuzz
@given(ranges, st.sampled_from(["n", "snr", "d", "label_flip", "noise", "dtype"]))
def test_a_range_is_values_of_its_kind_or_a_sentence(text: str, name: str) -> None:
    info = describe(benign_vit.parameters)[name]
    values, seeds = taken(lambda: parse_range(info, text)), taken(lambda: parse_seeds(text))
    if values is not None:
        kind = {"int": int, "float": float, "literal": str}[info.kind]
        assert 1 <= len(values) <= MOST_VALUES
        assert len(set(values)) == len(values) or "," in text
        assert all(type(value) is kind for value in values)
    if seeds is not None:
        assert seeds and all(type(seed) is int and seed >= 0 for seed in seeds)


terms = st.recursive(
    st.one_of(st.sampled_from(["n", "snr", "d"]), numbers),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**", "^", "%"]), inner).map("".join),
        st.builds("{}({})".format, st.sampled_from(["", "log", "exp", "sqrt", "eval"]), inner),
    ),
    max_leaves=12,
)
laws = st.one_of(
    st.tuples(terms, terms).map("=".join),
    st.text(alphabet="nsr0123456789+-*/()=. _e", max_size=60),
    st.text(max_size=20),
)


@fuzz
@given(laws)
def test_an_equation_is_a_curve_or_a_sentence(text: str) -> None:
    if law := taken(lambda: law_of(text, "n", "snr")):
        values = {"n": np.array([[1.0], [2.0]]), "snr": np.array([[0.0, 3.0, 1e300]])}
        assert law.difference(values).shape == (2, 3)
        assert law.names <= {"n", "snr"}


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=10,
)


def toml_of(value: object) -> str:
    """A value as TOML writes it, as far as it can."""
    written = json.dumps(value, separators=(", ", " = "))
    return written.replace("NaN", "nan").replace("Infinity", "inf")


usual = {
    "title": st.just("a"),
    "study": st.just("toy"),
    "figures": st.just(["heatmap"]),
    "directory": st.sampled_from(["a", "..", "a/b", "a\n"]),
    "set": st.dictionaries(st.sampled_from(["n", "snr", "x"]), ranges, max_size=2),
    "quick": st.fixed_dictionaries({}, optional={"seeds": ranges, "set": json_values}),
    "other": json_values,
}
presets = st.fixed_dictionaries(
    {}, optional={name: st.one_of(json_values, values) for name, values in usual.items()}
).map(lambda preset: "\n".join(f"{json.dumps(key)} = {toml_of(preset[key])}" for key in preset))


@fuzz
@given(st.one_of(presets, st.text(max_size=60)).map(str.encode) | st.binary(max_size=60))
def test_a_preset_is_read_or_refused_in_a_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.toml"
        path.write_bytes(content)
        if preset := taken(lambda: find_preset(str(path)), of=path):
            assert preset.profile("quick").texts is not None
            assert "/" not in preset.run_name("quick")


short = st.text(max_size=5)
names = st.sampled_from(["n", "snr", "mood", "x"])
past_runs = st.fixed_dictionaries(
    {
        "values": st.dictionaries(names, st.lists(json_values, max_size=4), max_size=3),
        "seeds": st.lists(st.integers(-2, 2**64), max_size=3),
    },
    optional={"settings": json_values, "more": json_values},
)
manifests = st.fixed_dictionaries(
    {"schema": st.just(1), "study": st.just("toy"), "version": st.integers()},
    optional={
        "data": st.dictionaries(short, short, max_size=2),
        "runs": st.lists(past_runs, max_size=3),
    },
)


@fuzz
@given(st.one_of(json_values, manifests).map(json.dumps).map(str.encode) | st.binary(max_size=80))
def test_a_manifest_is_read_or_refused_in_a_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / MANIFEST).write_bytes(content)
        directory = RunDirectory(Path(folder))
        if manifest := taken(lambda: directory.manifest):
            assert set(manifest.planned(TOY)) == {"seed", *describe(TOY.parameters)}
            text = manifest.model_dump_json(by_alias=True)
            again = Manifest.model_validate_json(text, strict=True)
            assert again.model_dump_json(by_alias=True) == text


def mangled(content: bytes) -> st.SearchStrategy[bytes]:
    """The content of a file after something happened to it, or of no such file."""

    def overwritten(at: int, new: bytes) -> bytes:
        return content[:at] + new + content[at + len(new) :]

    place = st.integers(0, len(content) - 1)
    bits = st.sampled_from([1 << bit for bit in range(8)])
    flipped = st.builds(lambda at, bit: overwritten(at, bytes([content[at] ^ bit])), place, bits)
    replaced = st.builds(overwritten, st.just(len(content)) | place, st.binary(max_size=40))
    return flipped | replaced | place.map(lambda end: content[:end]) | st.binary(max_size=200)


KINDS = ("png", "pdf", "svg")


@functools.cache
def figure(kind: str) -> bytes:
    """A picture in a file of this kind."""
    return file_content(picture(), kind)


@fuzz
@given(st.sampled_from(KINDS).map(figure).flatmap(mangled))
def test_a_mangled_figure_is_read_or_refused_in_a_sentence(content: bytes) -> None:
    if read := taken(lambda: read_record(content)):
        kind, record = read
        assert kind in KINDS
        assert read_record(with_text(record.text()))[1] == record


def edits(record: Mapping[str, object], *more: str) -> st.SearchStrategy[dict[str, object]]:
    """The record with other values in some fields, or with fields that it has not."""
    changed = st.dictionaries(st.sampled_from([*record, *more, "other"]), json_values, max_size=2)
    return changed.map(lambda values: {**record, **values})


DRAWN, OF_SIDES = (json.loads(record.text()) for record in (RECORD, COMPARED))
HOW = OF_SIDES["compared"]
PUBLISHED = HOW["published"]


@fuzz
@given(edits(DRAWN), edits(DRAWN["look"], "height"), edits(HOW), json_values | edits(PUBLISHED))
def test_an_edited_record_is_read_or_refused_in_a_sentence(
    drawn: dict[str, object], look: object, how: dict[str, object], file: object
) -> None:
    for record in (drawn | {"look": look}, OF_SIDES | {"compared": how | {"published": file}}):
        if read := taken(partial(read_record, with_text(json.dumps(record)))):
            taken(partial(look_of_record, read[1].look))


@fuzz
@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_shown_in_one_line(text: str) -> None:
    shown = visible(text)
    assert is_text(shown)
    assert not set(shown) & {"\n", "\r", "\x1b", "\u202e", "\u2028"} and visible(shown) == shown
    page = escape_markdown(text)
    assert "<" not in page and len(page.splitlines()) <= 1


NAMES = ("n", "N", "snr", "mood", "seed", "test_loss", "steps", "status", "key")
fields = st.one_of(numbers, st.text(alphabet="ab;,\"'\r\n\t \x00\x1b", max_size=4))
headers = st.sampled_from([*NAMES, ""])


@fuzz
@given(
    st.lists(headers, max_size=4),
    st.lists(st.lists(fields, max_size=4), max_size=4),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
def test_any_csv_file_is_read_or_refused(
    header: list[str], rows: list[list[str]], encoding: str
) -> None:
    text = "\n".join(",".join(row) for row in [header, *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "published.csv"
        path.write_bytes(text.encode(encoding, errors="replace"))
        points = taken(lambda: read_published(path, TOY, {}), of=path)
    if points is not None:
        assert len(points) > 0 and set(points["status"]) <= {"done", "failed"}
