"""Tables in LaTeX: numbers, words and heads that compile, and show what is meant."""

from __future__ import annotations

import math

import pytest

from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import find_study, installed_studies
from overfit_cli.report.latex import estimate, head, text, value


@pytest.mark.parametrize(
    ("mean", "half", "written"),
    [
        (0.69312, 0.01234, r"$0.693 \pm 0.012$"),
        (0.69312, 0.00996, r"$0.693 \pm 0.010$"),
        (15321.0, 1234.0, r"$15300 \pm 1200$"),
        (12.0, 34.5, r"$12 \pm 34$"),  # half to even, as 34.5 is exact
        (-0.04, 3.2, r"$0.0 \pm 3.2$"),
        (-1.26, 0.31, r"$-1.26 \pm 0.31$"),
        (1.234e-7, 3.21e-9, r"$(1.234 \pm 0.032) \cdot 10^{-7}$"),
        (2.6e8, 1.1e9, r"$(0.3 \pm 1.1) \cdot 10^{9}$"),
        (0.2, 0.0, "$0.2$"),
        (0.2, 1e-17, "$0.2$"),
        (0.123456, math.nan, "$0.1235$"),
        (math.nan, math.nan, "--"),
        (math.inf, math.nan, r"$\infty$"),
    ],
)
def test_a_mean_is_written_as_well_as_it_is_known(mean: float, half: float, written: str) -> None:
    assert estimate(mean, half) == written


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (20, "$20$"),
        (-3, "$-3$"),
        (-0.0, "$0$"),
        (10**18, "$10^{18}$"),
        (2500000, r"$2.5 \cdot 10^{6}$"),
        (123456, "$123456$"),
        (0.1, "$0.1$"),
        (1e-7, "$10^{-7}$"),
        (-1e-7, "$-10^{-7}$"),
        (0.831304347, "$0.831304$"),
        (-math.inf, r"$-\infty$"),
        (True, "true"),
        (None, "--"),
        ("softmax", "softmax"),
    ],
)
def test_values_are_formulas_or_words(given: object, written: str) -> None:
    assert value(given) == written


def test_words_are_shown_as_they_are() -> None:
    assert text("50% of a_b & #1 {x} $y$") == r"50\% of a\_b \& \#1 \{x\} \$y\$"
    assert text("a~b^c\\d") == r"a\textasciitilde{}b\textasciicircum{}c\textbackslash{}d"
    assert text("[2pt]*<|>") == r"{[}2pt{]}{*}\textless{}\textbar{}\textgreater{}"
    assert text("log₁₀ of ζ − 10⁻⁶") == r"log$_{10}$ of $\zeta$ $-$ 10$^{-6}$"
    assert text("two\nlines") == r"two\textbackslash{}nlines"


def test_numbers_are_headed_by_their_symbols_and_the_rest_by_words() -> None:
    vit, images = find_study("benign-vit"), find_study("benign-vit-images")
    assert head(vit, "snr") == r"$\mathrm{SNR}$"
    assert head(vit, "sigma_p_tilde") == r"$\tilde{\sigma}_p$"
    assert head(vit, "labels") == "training labels"
    assert head(vit, "test_loss") == "test loss $L_D$"
    assert head(vit, "test_error") == "test error"
    assert head(images, "patch") == "width and height of a patch (pixels)"
    assert head(find_study("kernel-text"), "kernel") == "attention kernel"
    assert [head(vit, name) for name in ("steps", "seconds", "seed")] == [
        "gradient steps",
        "time (s)",
        "seed",
    ]


def test_every_head_is_one_that_any_latex_can_set() -> None:
    for study in installed_studies():
        names = [*describe(study.parameters), *(column.name for column in study.columns)]
        for name in names:
            written = head(study, name)
            assert written.isascii(), written
            assert written.count("{") == written.count("}"), written
            assert written.count("$") % 2 == 0, written
