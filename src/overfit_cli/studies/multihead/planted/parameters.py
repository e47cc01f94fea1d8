"""Parameters of the study `multihead-planted`."""

from __future__ import annotations

from overfit_cli.core.parameters import parameter
from overfit_cli.studies.multihead.parameters import MultiheadParameters


class MultiheadPlantedParameters(MultiheadParameters):
    """Data model DM2: Gaussian tokens, labelled by a single head, the doubtful ones dropped."""

    n: int = parameter(1000, "training samples", symbol="n", at_least=1, at_most=10**6)
    test_samples: int = parameter(3000, "test samples", at_least=1, at_most=10**6)
    target_loss: float = parameter(
        0.02,
        "training loss up to which steps are counted",
        label="target training loss",
        above=0,
        at_most=10,
    )
    d: int = parameter(5, "features of a token", symbol="d", at_least=1, at_most=1000)
    least_logit: float = parameter(
        0.2,
        "samples whose planted logit is smaller are dropped",
        symbol=r"\gamma_{\mathrm{attn}}",
        label="least planted logit",
        at_least=0,
        at_most=1,
    )
