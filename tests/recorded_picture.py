"""A picture with a record that has every field and awkward texts, and files that hold a record."""

from __future__ import annotations

import io
from dataclasses import replace

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.draw import ComparisonRecord, FigureRecord, SourceRecord
from overfit_cli.figures.picture import Picture, new_panels
from overfit_cli.figures.style import Look

RUN = SourceRecord(
    path="results/Löss (1)",
    beside="..",
    study="toy",
    version=3,
    commits=("c0ffee", "decade"),
    cells=12,
    key="0123456789abcdef0123",
    data="ab" * 32,
)
OTHER = RUN.model_copy(update={"path": "b", "name": "b"})
RECORD = FigureRecord(
    schema=1,
    overfit="0.1.0",
    packages={"matplotlib": "3.10.0", "numpy": "2.0"},
    command=r"""overfit plot heatmap --where 'A \(ö) "<&>' """,
    title='A \\(ö) "<&>\nin two lines \x1b',
    figure="heatmap",
    options=FigureOptions(
        x="snr", threshold=0.1, law=("n = 1 / 3", "n < )"), log=frozenset({"y", "x", "value"})
    ),
    where=("n=2:4",),
    look=Look(width=85 / 25.4, style="my ]]> \\udcff.mplstyle"),
    runs=(RUN, OTHER),
    minus=OTHER,
)
HOW = ComparisonRecord(
    columns=("test_loss", "steps"),
    where_a=("snr=1",),
    where_b=("snr=2:4", "seed=0"),
    published=SourceRecord(path="Löss.CSV", beside="../x", name='"<&>', data="cd" * 32),
)
COMPARED = RECORD.model_copy(update={"runs": (RUN,), "minus": None, "compared": HOW})


def picture(record: FigureRecord | None = RECORD) -> Picture:
    figure, [axes] = new_panels(1)
    figure.look = replace(figure.look, settings={"savefig.dpi": 50})
    axes.plot([0, 1, 4])
    figure.metadata = record.metadata() if record is not None else {}
    return figure


def with_text(text: str) -> bytes:
    """A PNG file with this as its record."""
    metadata, file = PngInfo(), io.BytesIO()
    metadata.add_text("overfit", text)
    Image.new("RGB", (2, 2)).save(file, "PNG", pnginfo=metadata)
    return file.getvalue()
