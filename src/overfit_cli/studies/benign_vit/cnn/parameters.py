"""Parameters of `benign-cnn`: those of `benign-vit`, and the CNN of Cao et al. 2022."""

from __future__ import annotations

from typing import Literal, TypeGuard

from overfit_cli.core.parameters import parameter
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters


class BenignCnnParameters(BenignVitParameters):
    """Definition 3.1's data, and either model; defaults suit section 6's strengths."""

    model: Literal["cnn", "vit"] = parameter(
        "cnn",
        "two-layer CNN, or the Vision Transformer of benign-vit",
        label="model",
        value_labels={"cnn": "CNN", "vit": "Vision Transformer"},
    )
    filters: int = parameter(
        20,
        "filters of each class in the CNN",
        symbol="m",
        label="filters of each class",
        at_least=1,
        at_most=10_000,
    )
    power: float = parameter(
        3.0,
        "power q of the CNN's activation ReLU^q",
        symbol="q",
        label="power of the activation",
        at_least=1,
        at_most=10,
    )
    sigma_0: float = parameter(
        0.001,
        "deviation of the CNN's initial weights",
        symbol=r"\sigma_0",
        label="deviation of the filters",
        above=0,
        at_most=1e6,
    )
    filter_rate: float = parameter(
        0.001,
        "step size of the CNN",
        symbol=r"\eta_{\mathrm{CNN}}",
        above=0,
        at_most=1e6,
    )


def is_cnn(parameters: BenignVitParameters) -> TypeGuard[BenignCnnParameters]:
    """Return whether a cell of `benign-cnn` trains the CNN."""
    return isinstance(parameters, BenignCnnParameters) and parameters.model == "cnn"
