"""The numbers of the proofs' propositions, on logged steps that are written by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from overfit_cli.studies.benign_vit.vit import lemma_numbers as numbers
from overfit_cli.studies.benign_vit.vit.parameters import TOKEN_CLASSES
from tests.studies.benign_vit.cells import preset, settings

[BENIGN, *_] = settings(preset("theorem-dynamics-benign"))
[HARMFUL, *_] = settings(preset("theorem-dynamics-harmful"))


def steps_at(times: list[float], **columns: list[float]) -> pd.DataFrame:
    """Logged steps with even attention over three tokens, but for what is given."""
    even = {f"attention_{a}_{b}": 1 / 3 for a in TOKEN_CLASSES for b in TOKEN_CLASSES}
    return pd.DataFrame({"step": times}).assign(loss_slope=0.5, **even).assign(**columns)


def test_attention_is_even_up_to_t1_and_not_after_it() -> None:
    t1 = numbers.t1(BENIGN, "benign")
    steps = steps_at([0, t1, 2 * t1], attention_noise_signal=[1 / 3, 0.4, 0.9])
    gone = partial(numbers.attention_gone_at_t1, parameters=BENIGN, side="benign")
    assert gone(steps, source="noise") == pytest.approx(0.2)
    assert gone(steps, source="signal") == pytest.approx(0)
    assert gone(steps.assign(step=steps["step"] / 2), source="noise") == pytest.approx(1.7)


def test_harmful_products_grow_with_token_2_and_benign_ones_with_the_signal() -> None:
    part = np.linspace(0, 40, 81)
    steps = pd.DataFrame({"step": 1e9 * part}).assign(
        signal_lead=np.where(part < 1, 0, 99),
        noise_lead=np.where(part < 1, 0, 99),
        loss_slope=0.5,
        product_noise_noise=np.log1p((part - 1).clip(min=0) ** 3),
        product_noise_signal=0.0,
    )
    steps.loc[80, "loss_slope"] = 0.1
    assert numbers.stage_2_products(steps, HARMFUL, "noise", "harmful") == pytest.approx(3)
    assert numbers.stage_2_products(steps, BENIGN, "noise", "benign") == 0
