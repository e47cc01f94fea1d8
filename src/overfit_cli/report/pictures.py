"""The figures of a run as pictures inside the page."""

from __future__ import annotations

import base64
import contextlib
import io
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PIL import Image

from overfit_cli.drawing import Request, draw_figure
from overfit_cli.errors import UserError
from overfit_cli.figure import FigureOptions
from overfit_cli.figures.picture import Look, image
from overfit_cli.registry import figures_of
from overfit_cli.standard_figures import any_grid
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.presets import all_presets, presets_run_into
from overfit_cli.sweeps.store import RunDirectory

DOTS_PER_INCH = 200
COLOURS = 256
MOST_FIGURES = 3
"""Of a run that no preset is run into."""


@dataclass(frozen=True)
class PagePicture:
    """A figure of a run, for the page.

    Attributes:
        name: the figure's.
        caption: what it shows, from which cells.
        command: what draws it as a file.
        address: the picture itself, as a `data:` address.
        width, height: in pixels.
    """

    name: str
    caption: str
    command: str
    address: str
    width: int
    height: int


@dataclass(frozen=True)
class NotDrawn:
    """A figure of a run's preset that its cells can't carry.

    Attributes:
        name: the figure's.
        why: the reason, a sentence.
    """

    name: str
    why: str


def pictures_of(
    directory: RunDirectory, study: AnyStudy, where: Sequence[str]
) -> Iterator[PagePicture | NotDrawn]:
    """Draw the figures of a run, one by one: its preset's, or else the first that can be drawn.

    A run of no preset promises no figure, so that none of those is missed.
    """
    names = _figures_of_presets(directory.path.resolve().name)
    if names:
        for name in names:
            try:
                yield _drawn(name, directory, where)
            except UserError as error:
                yield NotDrawn(name, str(error))
        return
    found = 0
    for name in _any_figures(study):
        if found < MOST_FIGURES:
            with contextlib.suppress(UserError):
                yield _drawn(name, directory, where)
                found += 1


def _figures_of_presets(run_name: str) -> list[str]:
    """The figures of the presets that are run into a directory of this name."""
    named = [name for preset in presets_run_into(run_name) for name in preset.content.figures]
    return list(dict.fromkeys(named))


def _any_figures(study: AnyStudy) -> list[str]:
    """The figures of a study: those that its presets name first, then those of any grid."""
    of_presets = [
        name
        for preset in all_presets()
        if preset.content.study == study.name
        for name in preset.content.figures
    ]
    own = figures_of(study)
    return [name for name in dict.fromkeys([*of_presets, *any_grid()]) if name in own]


def _drawn(name: str, directory: RunDirectory, where: Sequence[str]) -> PagePicture:
    """Draw a figure of a run.

    Raises:
        UserError: if its cells can't carry it.
    """
    look = Look(dpi=DOTS_PER_INCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were said of the directory already
        picture = draw_figure(Request(name, [directory], FigureOptions(), where, look=look))
        drawn = Image.open(io.BytesIO(image(picture, "png"))).convert("RGB")
    small = io.BytesIO()
    # A figure has few colours: this halves the page, and nobody sees the difference.
    few = drawn.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
    few.save(small, "WEBP", lossless=True, method=4)
    chosen = [word for one in where for word in ("--where", one)]
    return PagePicture(
        name=name,
        caption=picture.caption.split("\n\n", 1)[0].replace("\n", " "),
        command=shlex.join(["overfit", "plot", name, "--from", str(directory.path), *chosen]),
        address=f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}",
        width=drawn.width,
        height=drawn.height,
    )
