"""Labels that don't fit where a picture has them: they are wrapped, or turned, once it is laid out.

A label fits if it lies on the picture and on no other label of its kind.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Bbox

from overfit_cli.figures.labels import typeset, wrap_text


def fit_labels(figure: Figure, renderer: Any) -> bool:
    """Wrap labels, and names of ticks along x, that don't fit; return whether any didn't."""
    shown = [axes for axes in figure.axes if axes.get_visible()]
    changes = [
        *_wrapped_labels(figure, shown, "x", renderer),
        *_wrapped_labels(figure, shown, "y", renderer),
    ]
    turned = [change for axes in shown for change in _wrapped_ticks(figure, axes, renderer)]
    for label, text in changes:
        label.set_text(text)
    for axes, names, angle in turned:
        axes.xaxis.set_ticks(axes.get_xticks(), names)
        axes.tick_params(axis="x", labelrotation=angle)
    return bool(changes or turned)


def titles_collide(figure: Figure, renderer: Any) -> bool:
    """Return whether titles of panels lie on each other, or beyond the picture."""
    titles = [
        text
        for axes in figure.axes
        for text in axes.get_children()
        if isinstance(text, Text) and text.get_text() == axes.get_title(loc="left") != ""
    ]
    boxes = [title.get_window_extent(renderer) for title in titles]
    pairs = itertools.combinations(boxes, 2)
    return any(box.x1 > figure.bbox.x1 for box in boxes) or any(a.overlaps(b) for a, b in pairs)


def _wrapped_labels(
    figure: Figure, all_axes: Sequence[Axes], side: Literal["x", "y"], renderer: Any
) -> list[tuple[Any, str]]:
    labels = [(axes, (axes.xaxis if side == "x" else axes.yaxis).label) for axes in all_axes]
    shown = [(axes, label) for axes, label in labels if label.get_text() and label.get_visible()]
    boxes = [label.get_window_extent(renderer) for _, label in shown]
    changes = []
    for (axes, label), box in zip(shown, boxes, strict=True):
        covered = [other for other in boxes if other is not box]
        covered += [other.bbox for other in all_axes if other is not axes]
        if _is_on(figure, box, side) and not any(box.overlaps(other) for other in covered):
            continue
        length, room = box.width, axes.bbox.width
        if side == "y":
            length, room = box.height, axes.bbox.height
        longest = max(len(typeset(line)) for line in label.get_text().split("\n"))
        joined = re.sub(r"\n(?!\()", " ", label.get_text())  # a note in brackets begins a line
        text = wrap_text(joined, max(1, int(longest * room / length)))
        changes += [(label, text)] if text != label.get_text() else []
    return changes


def _is_on(figure: Figure, box: Bbox, side: Literal["x", "y"]) -> bool:
    if side == "x":
        return bool(box.x0 >= 0 and box.x1 <= figure.bbox.width)
    return bool(box.y0 >= 0 and box.y1 <= figure.bbox.height)


def _wrapped_ticks(
    figure: Figure, axes: Axes, renderer: Any
) -> list[tuple[Axes, list[str], float]]:
    ticks = [label for label in axes.get_xticklabels() if label.get_visible() and label.get_text()]
    if not isinstance(axes.xaxis.get_major_locator(), FixedLocator) or len(ticks) < max(
        2, len(axes.get_xticks())
    ):
        return []
    boxes = [label.get_window_extent(renderer) for label in ticks]
    overlap = any(left.overlaps(right) for left, right in itertools.pairwise(boxes))
    if not overlap and all(_is_on(figure, box, "x") for box in boxes):
        return []
    names = [label.get_text() for label in ticks]
    letter = max(box.width for box in boxes) / max(len(typeset(name)) for name in names)
    centres = [(box.x0 + box.x1) / 2 for box in boxes]
    room = min(right - left for left, right in itertools.pairwise(centres))
    letters = int(room / letter) - 1
    wrapped = [wrap_text(name, max(letters, 1)) for name in names]
    if all(len(typeset(line)) <= letters for name in wrapped for line in name.split("\n")):
        return [(axes, wrapped, 0.0)]
    return [(axes, names, 90.0)]
