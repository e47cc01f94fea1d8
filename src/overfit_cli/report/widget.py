"""The page's phase diagram as a widget of a notebook, drawn by the page's own script."""

from __future__ import annotations

import json

import anywidget
import traitlets

from overfit_cli.core.text import visible
from overfit_cli.report.diagrams import (
    FEWEST_VALUES,
    MOST_VALUES,
    Diagram,
    load_diagram,
)
from overfit_cli.report.page import concatenate
from overfit_cli.sweeps.store import RunDirectory

SCRIPTS = ("elements.js", "reading.js", "panel.js", "diagrams.js", "widget.js")
"""The parts of the page's script that draw a diagram, and what makes a widget of it."""

STYLES = ("widget.css", "diagrams.css")


def script() -> str:
    """Return the widget's module, with its style and its patterns as texts."""
    texts = {"STYLE": concatenate(STYLES), "PATTERNS": concatenate(["patterns.html"])}
    constants = "".join(f"const {name} = {json.dumps(text)};\n" for name, text in texts.items())
    return constants + concatenate(SCRIPTS)


class DiagramWidget(anywidget.AnyWidget):
    """A phase diagram whose points show their numbers under the pointer.

    Attributes:
        diagram: its data; see `report.diagrams.make_diagram`.
    """

    _esm = script()
    diagram = traitlets.Dict().tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)

    def __init__(self, diagram: Diagram, name: str) -> None:
        super().__init__(diagram=dict(diagram), name=name)

    def __repr__(self) -> str:
        """Say what it shows, for a notebook that is read without its kernel."""
        axes = f"{self.diagram['x']['label']} and {self.diagram['y']['label']}"
        shown = f"{self.name}: {self.diagram['value']} over {axes}"
        return f"<Phase diagram of {visible(shown)}; run the cell to see the numbers of its points>"


def diagram_widget(run: RunDirectory, conditions: list[str]) -> DiagramWidget:
    """Return the widget of a run's phase diagram."""
    diagram = load_diagram(run, conditions)
    if diagram is None:
        raise run.error(
            f"its cells make no phase diagram; it takes two parameters that vary, one of them with "
            f"{FEWEST_VALUES} values or more and both with at most {MOST_VALUES}, and differing "
            "numbers at more than half of the points."
        )
    return DiagramWidget(diagram, run.path.resolve().name)
