"""The pictures of a report's page: the figures of its runs, inside the page, and their diagrams.

A run has the figures that its preset names, else those that are kept in its directory, else, of a
study without presets, the first general ones. The most important runs are drawn first, until
`MOST_BYTES` are used. A figure that shows nothing is left out.
"""

from __future__ import annotations

import base64
import io
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jinja2.utils import htmlsafe_json_dumps
from PIL import Image

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions, grid_figures
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural, shorten, slug, visible
from overfit_cli.figures.draw import Request, draw_figure
from overfit_cli.figures.picture import Look, file_content
from overfit_cli.report.claim_figure import NAME as CLAIM_FIGURE
from overfit_cli.report.claim_figure import draw_claims
from overfit_cli.report.contents import ReportedRun
from overfit_cli.report.diagrams import load_diagram
from overfit_cli.report.judge import Judged
from overfit_cli.sweeps.presets import all_presets, presets_run_into

MOST_BYTES = 3_600_000
"""The limit of all figures and diagrams of a page, which has 5 MB in all."""

MOST_FIGURES = 3
"""The limit of figures for a run whose figures nobody chose."""

DOTS_PER_INCH = 155
COLOURS = 96


@dataclass(frozen=True)
class PagePicture:
    """A figure of a run, for the page.

    Attributes:
        address: the picture as a `data:` address.
    """

    name: str
    caption: str
    command: str
    address: str
    width: int
    height: int

    @property
    def is_wide(self) -> bool:
        """Whether it is wider than a column of a paper."""
        return self.width > 4.5 * DOTS_PER_INCH


@dataclass
class RunOnPage:
    """A run with its address within the page and its figures.

    Attributes:
        not_drawn: a sentence for each figure that cannot be drawn of its cells.
        diagram: its phase diagram as JSON; empty for none.
        claims: the sentences of a user's study that are judged on it, which have a drawing.
    """

    run: ReportedRun
    id: str
    pictures: list[PagePicture] = field(default_factory=list)
    not_drawn: list[str] = field(default_factory=list)
    diagram: str = ""
    claims: Sequence[Judged] = ()
    left_out: bool = False

    @property
    def summary(self) -> str:
        """It in a line: its preset's title, its cells and its figures."""
        facts = self.run.facts
        presets = presets_run_into(self.run.path.resolve().name)
        failed = sum(facts.reasons.values())
        cells = f"{plural(facts.done, 'cell')}{f' and {failed} that failed' if failed else ''}"
        names = ", ".join(picture.name for picture in self.pictures)
        parts = [*(preset.content.title for preset in presets[:1]), cells, names]
        return "; ".join(filter(None, parts))

    def figure_id(self, name: str) -> str:
        """Return the address within the page of one of its figures; empty where it has none."""
        has_it = any(picture.name == name for picture in self.pictures)
        return f"figure-{slug(self.run.name)}-{name}" if has_it else ""

    @property
    def has_map(self) -> bool:
        """Whether a figure shows the diagram too: then the diagram is not printed."""
        return any(picture.name == "heatmap" for picture in self.pictures)

    @property
    def size(self) -> int:
        """The bytes of its figures and its diagram."""
        return len(self.diagram.encode()) + sum(len(picture.address) for picture in self.pictures)


def weight(run: ReportedRun) -> int:
    """Return a number that sorts runs by importance, the most important first.

    Runs that decide claims and reproduce a figure of the paper come before those that do one.
    """
    return -(bool(run.figure) + run.decides)


def draw_all(runs: Sequence[RunOnPage], conditions: Sequence[str]) -> None:
    """Draw the figures of one run after the other, up to `MOST_BYTES` in all."""
    remaining = MOST_BYTES
    for run in runs:
        if remaining > 0:
            _illustrate(run, conditions)
        if remaining <= 0 or run.size > remaining:
            run.pictures, run.diagram, run.left_out = [], "", True
            remaining = 0  # no less important run is shown in its place
        remaining -= run.size


def _illustrate(target: RunOnPage, conditions: Sequence[str]) -> None:
    named = [*([CLAIM_FIGURE] if target.claims else []), *_named_figures(target.run)]
    others = () if _is_planned(target.run) else _figures_of_any_run(target.run.study)
    for name in (*named, *(name for name in others if name not in named)):
        if name not in named and len(target.pictures) >= MOST_FIGURES:
            break
        try:
            target.pictures.append(_picture(name, target, conditions))
        except UserError as error:
            if name in named:
                target.not_drawn.append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
        except Exception as error:  # one figure must not cost the whole report
            target.not_drawn.append(f"{name}: {_defect(error)}")
    try:
        target.diagram = _diagram(target.run, conditions)
    except Exception as error:
        target.not_drawn.append(f"phase diagram: {_defect(error)}")


def _is_planned(run: ReportedRun) -> bool:
    return any(preset.content.study == run.study.name for preset in all_presets())


def _named_figures(run: ReportedRun) -> list[str]:
    presets = presets_run_into(run.path.resolve().name)
    if presets:
        names = [name for preset in presets for name in preset.content.figures]
    else:
        kept = sorted((run.path / "figures").glob("*.png"))
        names = [path.stem for path in kept if path.stem in figures_of(run.study)]
    return list(dict.fromkeys(names))


def _defect(error: Exception) -> str:
    return f"its drawing failed ({type(error).__name__}: {visible(shorten(str(error)))})."


def _figures_of_any_run(study: AnyStudy) -> Iterator[str]:
    return (name for name in grid_figures() if name in figures_of(study))


def _picture(name: str, target: RunOnPage, conditions: Sequence[str]) -> PagePicture:
    run, quoted = target.run, shlex.quote(str(target.run.path))
    look = Look(settings={"savefig.dpi": DOTS_PER_INCH})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the runs has shown the warnings
        if name == CLAIM_FIGURE:
            command = f"overfit judge {quoted} --out {name}.png"
            picture = draw_claims(run.path, target.claims, conditions, look=look)
        else:
            command = f"overfit plot {name} --from {quoted}"
            picture = draw_figure(
                Request(name, [run.directory], FigureOptions(), conditions, look=look)
            )
        if picture.nothing:
            raise UserError(picture.nothing)
        pixels = Image.open(io.BytesIO(file_content(picture, "png"))).convert("RGB")
    small = io.BytesIO()
    reduced = reduce_colours(pixels)
    reduced.save(small, "WEBP", lossless=True, quality=100, method=4)
    options = "".join(f" --where {shlex.quote(condition)}" for condition in conditions)
    return PagePicture(
        name=name,
        caption=picture.caption.split("\n\n", 1)[0].replace("\n", " "),
        command=f"{command}{options}",
        address=f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}",
        width=pixels.width,
        height=pixels.height,
    )


def reduce_colours(pixels: Image.Image) -> Image.Image:
    """Return a figure in `COLOURS` colours: it halves the page without a visible difference.

    The choice covers rare colours too, such as that of a thin line: the median cut would mix them
    with their neighbours.
    """
    reduced = pixels.quantize(
        COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE
    )
    return reduced.convert("RGB")


def _diagram(run: ReportedRun, conditions: Sequence[str]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the runs has shown the warnings
        diagram = load_diagram(run.directory, conditions, run.loaded.every_cell)
    return "" if diagram is None else htmlsafe_json_dumps(diagram, separators=(",", ":"))
