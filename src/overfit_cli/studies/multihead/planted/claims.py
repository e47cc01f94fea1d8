"""Claims of figures 4 and 5 of Deora et al. 2024: do heads find a planted one, and how fast?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from overfit_cli.claims.cells import Selection, Values, is_unknown
from overfit_cli.claims.python import above, below, share
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Kind
from overfit_cli.stats.intervals import middle
from overfit_cli.studies.multihead.claims import (
    ALL_HEADS,
    PAPER_NAME,
    REACHED,
    numbers,
    speed_claim,
    with_step_ends,
)
from overfit_cli.studies.multihead.curve_claims import speed_claims
from overfit_cli.studies.multihead.planted.gap_claims import CLAIMS as GAP_CLAIMS
from overfit_cli.studies.multihead.planted.parameters import (
    FOUND_AT,
    MultiheadPlantedParameters,
)

ROOT: Values = {"optimiser": "gd", "step_rule": "sqrt-heads", "learning_rate": 1.0}


@dataclass(frozen=True)
class Setting:
    """A way of training that claims are about."""

    values: Values
    preset: str  # one that has its cells
    source: str  # where the paper speaks of it
    words: str

    def select(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return its cells; samples and steps are those of the paper and of the preset."""
        return Selection(
            MultiheadPlantedParameters,
            at=self.values,
            vary={"heads"},
            alike={"certify", "test_samples"},
            includes=ALL_HEADS,
            preset=self.preset,
        ).of(cells)


SETTINGS = {
    "gd": Setting(ROOT, "heads-fig4", "figure 4", "gradient descent with steps of √H"),
    "momentum": Setting(
        {**ROOT, "optimiser": "momentum"},
        "heads-fig5",
        "figure 5, left",
        "momentum with steps of √H",
    ),
    "adam": Setting(
        {"optimiser": "adam", "learning_rate": 0.02},
        "heads-fig5-adam",
        "figure 5, right",
        "Adam with constant steps of 0.02",
    ),
}

STEPS_TO_MARGIN = {"gd": 10_000, "momentum": 1000, "adam": 5000}
"""More than in figures 4 and 5 where the margin of few heads still grows at their last step."""

LONG = {
    name: replace(
        SETTINGS[name],
        values={**SETTINGS[name].values, "training_steps": STEPS_TO_MARGIN[name]},
        preset=preset,
    )
    for name, preset in (("gd", "heads-planted-margin"), ("adam", "heads-planted-margin-adam"))
}

LARGE_ADAM = Setting(
    {"optimiser": "adam", "learning_rate": 0.06},
    "heads-adam-large",
    "figure 5, right",
    "Adam with DM1's constant steps of 0.06",
)
"""The step size that the paper names for DM1; for DM2 it names none."""


def with_alignments(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with how far heads have found the planted one: not, where they diverged."""
    columns = ["alignment_w", "alignment_u"]
    lost = (cells["status"] != "done") & ~is_unknown(cells)
    aligned = {name: numbers(cells, name).mask(lost, -1.0) for name in columns}
    return cells.assign(**aligned, status=cells["status"].mask(lost, "done"))


def _ratios_of_methods(cells: pd.DataFrame) -> pd.DataFrame:
    """The steps of momentum over those of gradient descent, of each seed the middle H.

    A row for each seed; the columns `least` and `most` are its ends where steps are not known.
    """
    quick, slow = (
        with_step_ends(SETTINGS[name].select(cells)).set_index(["seed", "heads"])
        for name in ("momentum", "gd")
    )
    least, most = (
        (quick[end] / slow[other]).groupby("seed").agg(middle)
        for end, other in (("least_steps", "most_steps"), ("most_steps", "least_steps"))
    )
    ends = pd.DataFrame({"least": least, "most": most})
    ratio = least.where(least == most)
    return ends.assign(ratio=ratio, status="done").reset_index()


def _fields(kind: Kind, name: str, source: str, statement: str, preset: str) -> dict[str, Any]:
    return {
        "name": f"planted-{name}",
        "kind": kind,
        "source": f"{PAPER_NAME}, {source}",
        "statement": statement,
        "hypotheses": _SETTING if kind == "paper" else "",
        "figure": "heads",
        "preset": preset,
    }


def _finding_claim(name: str, source: str, setting: Setting) -> Claim:
    return stated_claim(
        lambda cells: with_alignments(setting.select(cells)),
        MultiheadPlantedParameters,
        above(
            share(f"alignment_w > {FOUND_AT:g}", f"alignment_u > {FOUND_AT:g}", everywhere=True),
            0.8,
            strictly=False,
            seeds=17,
        ),
        number="the share of planted heads that every H finds",
        because="four planted heads of five",
        **_fields(
            "ours",
            f"{name}-finds",
            source,
            f"From zero {setting.words} finds the planted head, for H from 1 to 50, in 1000 steps.",
            setting.preset,
        ),
    )


_SETTING = (
    "DM2 with the sizes of appendix G, 1000 samples, zero initialisation; the law of the planted "
    "heads, c = 1 in steps of c √H, H from 1 to 50, 1000 steps and the training loss of 0.02 are "
    "choices of this tool"
)
_ASKED = "appendix G, with the step sizes, steps and marks of this tool"

CLAIMS = (
    *(_finding_claim(name, _ASKED, setting) for name, setting in SETTINGS.items()),
    _finding_claim(
        "adam-large", "appendix G, with the step size that it names for DM1", LARGE_ADAM
    ),
    *(
        stated_claim(
            setting.select,
            MultiheadPlantedParameters,
            above("margin_share", 0.95, strictly=False, over="worst", seeds=10).with_target(1),
            number="the median margin over γ_attn at the worst H",
            because=REACHED.because,
            **_fields(
                "ours",
                f"{name}-margin",
                _ASKED,
                f"Under {setting.words} all models come within a twentieth of the margin γ_attn, "
                f"for H from 1 to 50, in {STEPS_TO_MARGIN[name]} steps.",
                setting.preset,
            ),
        )
        for name, setting in {**LONG, "momentum": SETTINGS["momentum"]}.items()
    ),
    speed_claim(
        SETTINGS["gd"].select,
        MultiheadPlantedParameters,
        faster=True,
        **_fields(
            "paper",
            "gd-faster",
            "appendix G, on figure 4",
            f"Under {SETTINGS['gd'].words} overparameterization somewhat improves the speed of "
            "convergence: the steps to a training loss of 0.02 fall with H.",
            SETTINGS["gd"].preset,
        ),
    ),
    *(
        speed_claim(
            SETTINGS[setting].select,
            MultiheadPlantedParameters,
            faster=True,
            to_the_end=True,
            **_fields(
                "ours",
                name,
                f"{SETTINGS[setting].source}, with the step sizes and marks of this tool",
                f"Under {SETTINGS[setting].words} training is faster the more heads there are: it "
                "takes fewer steps to a training loss of 0.02, up to 50 heads.",
                SETTINGS[setting].preset,
            ),
        )
        for name, setting in (
            ("gd-ever-faster", "gd"),
            ("momentum-faster", "momentum"),
            ("adam-faster", "adam"),
        )
    ),
    stated_claim(
        _ratios_of_methods,
        MultiheadPlantedParameters,
        below("ratio", 1, seeds=10),
        number="its steps to the target loss over those of gradient descent",
        because="1 is no gain",
        between={"ratio": ("least", "most")},
        **_fields(
            "ours",
            "momentum-sooner",
            _ASKED,
            "Momentum of 0.9 takes fewer steps to a training loss of 0.02 than gradient descent, "
            "both with steps of √H.",
            SETTINGS["momentum"].preset,
        ),
    ),
    *GAP_CLAIMS,
    *speed_claims(
        MultiheadPlantedParameters,
        "planted",
        tuple(
            (name, setting.values, setting.preset, setting.words)
            for name, setting in SETTINGS.items()
        ),
        mark=0.02,
        kind="ours",
        source="appendix G, figures 4 and 5, with the marks of this tool",
    ),
)
