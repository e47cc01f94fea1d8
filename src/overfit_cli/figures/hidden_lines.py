"""Lines that lie on other lines, which a picture hides: the sentences of a caption that say so.

A line takes part that has a name (`name_line`); what it is called stands in the legend too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overfit_cli.core.arrays import Floats

COINCIDING_SHARE = 0.95
"""The share of both lines' points that lie on the other one, from which lines coincide."""

MOST_LISTED = 4
"""The largest number of sentences on lines that coincide, and of places in one."""

_BETWEEN = "\n"  # what a line shows, and its setting


def name_line(line: Line2D, shows: str, setting: str = "") -> None:
    """Name a line, for a caption to say where it is hidden.

    Args:
        shows: what it shows; empty where all lines show the same.
        setting: its setting; empty where all lines have the same.
    """
    line.set_label(f"{shows}{_BETWEEN}{setting}")


def hidden_in_words(figure: Figure) -> list[str]:
    """Return sentences on the named lines that coincide within the width of a line.

    Compared are lines of one setting, and lines that show the same at two settings. Where two
    coincide in some panels alone, the sentence lists them.
    """
    pairs: dict[tuple[str, str], list[tuple[str, str, bool]]] = {}
    for axes in figure.axes:
        named = [line for line in axes.lines if _BETWEEN in str(line.get_label())]
        for first, second in combinations(named, 2):
            (shows, setting), (other, its_setting) = map(_split, (first, second))
            if setting == its_setting and shows != other:
                pair, common = (shows, other), setting
            elif shows == other and setting != its_setting:
                pair, common = (setting, its_setting), shows
            else:
                continue
            place = (_letter(axes), common, coincide(axes, first, second))
            pairs.setdefault(pair, []).append(place)
    panels = len(list(filter(_letter, figure.axes)))
    sentences = [
        f"The lines of {first} and {second} coincide{_places_in_words(places, panels)}."
        for (first, second), places in pairs.items()
        if any(coincides for *_, coincides in places)
    ]
    if len(sentences) <= MOST_LISTED:
        return sentences
    hidden = [place for places in pairs.values() for *place, coincides in places if coincides]
    letters = ", ".join(sorted({letter for letter, _ in hidden} - {""}))
    where = f" in {letters}" if letters else ""
    return [f"Some lines coincide within their width{where}, and hide each other."]


def _split(line: Line2D) -> tuple[str, str]:
    shows, _, setting = str(line.get_label()).partition(_BETWEEN)
    return shows, setting


def _letter(axes: Axes) -> str:
    title = axes.get_title(loc="left")
    return title[:3] if title[:1] == "(" and title[2:3] == ")" else ""


def _places_in_words(places: Sequence[tuple[str, str, bool]], panels: int) -> str:
    hidden = [(letter, common) for letter, common, coincides in places if coincides]
    if len(hidden) == len(places) >= panels:
        return ""
    for index, word in ((1, "for"), (0, "in")):  # all panels of some settings, and the reverse
        some = {place[index] for place in hidden}
        of_some = [place for place in places if place[index] in some]
        is_whole = len(of_some) == len(hidden) and (index == 0 or len(hidden) >= panels)
        if is_whole and "" not in some and len(some) <= MOST_LISTED:
            listed = dict.fromkeys(place[index] for place in hidden)
            return f" {word} {', '.join(listed)}"
    texts = [", ".join(filter(None, place)) for place in hidden]
    if len(texts) <= MOST_LISTED:
        return f" in {'; '.join(texts)}"
    apart = [", ".join(filter(None, place)) for *place, coincides in places if not coincides]
    if len(apart) <= MOST_LISTED:
        return f" in all but {'; '.join(apart)}"
    return f" in {len(texts)} of {len(places)} cases"


def coincide(axes: Axes, first: Line2D, second: Line2D) -> bool:
    """Return whether two lines lie on one another, within the width of one line."""
    first_points, second_points = (_points_along(axes, line) for line in (first, second))
    if not (len(first_points) and len(second_points)):
        return False
    width = max(first.get_linewidth(), second.get_linewidth())
    pairs = (first_points, second_points), (second_points, first_points)
    return all((_distances(*pair) <= width).mean() >= COINCIDING_SHARE for pair in pairs)


_ALONG = 120
"""The number of points of a line that are compared."""


def _points_along(axes: Axes, line: Line2D) -> Floats:
    """Points evenly along what is seen of a line, in the picture's points; shape (_ALONG, 2).

    Of a line without two corners within the axes there is none: shape (0, 2).
    """
    corners = axes.transData.transform(np.asarray(line.get_xydata(), dtype=np.float64))
    ends = axes.bbox.padded(1.0)
    with np.errstate(invalid="ignore"):
        seen = (corners >= ends.min) & (corners <= ends.max)  # a log axis puts 0 far outside
    corners = corners[seen.all(axis=1)] * 72.0 / axes.figure.dpi
    if len(corners) < 2:
        return np.empty((0, 2))
    lengths = np.concatenate([[0.0], np.hypot(*np.diff(corners, axis=0).T).cumsum()])
    places = np.linspace(0.0, lengths[-1], _ALONG)
    return np.column_stack([np.interp(places, lengths, side) for side in corners.T])


def _distances(points: Floats, line: Floats) -> Floats:
    """The distance of each point to the nearest point of a line, by its sides; shape (points,)."""
    starts, sides = line[:-1], np.diff(line, axis=0)  # (sides, 2)
    offsets = points[:, None, :] - starts  # (points, sides, 2)
    lengths = np.maximum((sides**2).sum(axis=1), 1e-12)
    shares = np.clip((offsets * sides).sum(axis=2) / lengths, 0, 1)
    gaps = offsets - shares[:, :, None] * sides
    nearest: Floats = np.sqrt((gaps**2).sum(axis=2).min(axis=1))
    return nearest
