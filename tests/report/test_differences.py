"""Two runs compared: the numbers are those of a calculation by hand, and nothing is left unsaid."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from overfit_cli.core.text import UserError
from overfit_cli.report.difference_words import closing_lines, opening_lines
from overfit_cli.report.differences import Comparison, Difference, compare_sides
from tests.report.toy_numbers import Numbers, loss, write_run
from tests.toy_runs import TOY

T2 = 4.302653
"""The 97.5 % quantile of Student's t with two degrees of freedom: three seeds."""

SEEDS, NS, SNRS = (0, 1, 2), (1, 2), (1.0, 2.0)
DRAWS = np.random.default_rng(0).normal(size=(2, 3, 2, 2))
"""By side, seed, n and snr."""


def drawn(side: int) -> Numbers:
    """The losses of a side."""
    return loss(lambda n, snr, seed: DRAWS[side, seed % 3, n - 1, int(snr) - 1])


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Runs `a` and `b` with all seeds, whose numbers are `DRAWS`."""
    return write_run(tmp_path / "a", drawn(0)), write_run(tmp_path / "b", drawn(1))


def loss_of(found: Comparison) -> Difference:
    return next(one for one in found.differences if one.column == "test_loss")


def test_cells_of_one_seed_are_paired_and_seeds_are_what_is_drawn(two: tuple[Path, Path]) -> None:
    found = compare_sides(*two)
    one = loss_of(found)
    by_seed = (DRAWS[1] - DRAWS[0]).mean(axis=(1, 2))
    half = T2 * by_seed.std(ddof=1) / np.sqrt(3)
    assert (one.pairs, found.pairs.by) == (12, "seed")
    assert one.mean_a == pytest.approx(DRAWS[0].mean())
    assert one.mean_b == pytest.approx(DRAWS[1].mean())
    assert one.estimate.value == pytest.approx(by_seed.mean())
    assert one.estimate.low == pytest.approx(by_seed.mean() - half, rel=1e-6)
    assert one.estimate.high == pytest.approx(by_seed.mean() + half, rel=1e-6)
    assert one.estimate.kind == "95 % t over 3 seeds"


def test_the_largest_difference_is_told_with_its_place(two: tuple[Path, Path]) -> None:
    one = loss_of(compare_sides(*two))
    apart = DRAWS[1] - DRAWS[0]
    seed, n, snr = (int(at) for at in np.unravel_index(np.abs(apart).argmax(), apart.shape))
    assert one.largest == apart[seed, n, snr]
    assert one.at == {"n": NS[n], "snr": SNRS[snr], "seed": seed}


def test_the_difference_is_b_less_a(tmp_path: Path) -> None:
    low, high = (write_run(tmp_path / name, loss(lambda *_, x=x: x)) for name, x in WEIGHTS)
    assert loss_of(compare_sides(low, high)).estimate.value == 2.0
    assert loss_of(compare_sides(high, low)).estimate.value == -2.0


WEIGHTS = (("low", 1.0), ("high", 3.0))


def test_a_seed_counts_once_however_many_of_its_cells_are_there(tmp_path: Path) -> None:
    """Seed 2 has a cell that failed in B: its mean is that of its other three."""
    whole = drawn(1)
    broken = (2, 2.0, 2)
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", lambda *at: None if at == broken else whole(*at))
    found = compare_sides(a, b)
    apart = DRAWS[1] - DRAWS[0]
    apart[2, 1, 1] = np.nan
    expected = np.nanmean(apart, axis=(1, 2)).mean()
    assert loss_of(found).estimate.value == pytest.approx(expected)
    assert loss_of(found).pairs == 11
    assert (found.failed_in_b, found.failed_in_a) == (1, 0)
    assert "1 cell failed in B that is done in A." in opening_lines(found)
    assert "B: b, 12 cells of toy, 1 failed." in opening_lines(found)


def test_without_a_seed_in_common_means_are_compared(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", drawn(1), seeds=(3, 4, 5))
    found = compare_sides(a, b)
    one = loss_of(found)
    seeds_a, seeds_b = DRAWS[0].mean(axis=(1, 2)), DRAWS[1].mean(axis=(1, 2))
    parts = [seeds.var(ddof=1) / 3 for seeds in (seeds_a, seeds_b)]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 2)
    assert 2 < freedom < 4, "Welch's"
    places = DRAWS[1].mean(axis=0) - DRAWS[0].mean(axis=0)
    assert (one.pairs, found.pairs.by) == (4, "means")
    assert one.estimate.value == pytest.approx(seeds_b.mean() - seeds_a.mean())
    assert one.largest == pytest.approx(places.flat[np.abs(places).argmax()])
    assert set(one.at) == {"n", "snr"}
    half = one.estimate.high - one.estimate.value
    normal, few = 1.959964 * np.sqrt(sum(parts)), T2 * np.sqrt(sum(parts))
    assert normal < half < few
    assert one.estimate.kind == "95 % Welch's t over 3 and 3 seeds"
    assert any(
        "means over seeds: no seed is on both sides" in line for line in opening_lines(found)
    )


def test_which_places_a_seed_lacks_is_no_difference_of_means(tmp_path: Path) -> None:
    """B is A and 0.5 more everywhere; some seeds lack a place where the loss is a hundred."""

    def high(n: int, snr: float, seed: int) -> float:
        return 100.0 if n == 2 else snr

    a = write_run(tmp_path / "a", loss(high))
    b = write_run(
        tmp_path / "b",
        lambda n, snr, seed: (
            None if (n, seed) == (2, 4) else {"test_loss": high(n, snr, seed) + 0.5}
        ),
        seeds=(3, 4),
    )
    one = loss_of(compare_sides(a, b))
    assert one.estimate.value == pytest.approx(0.5)
    assert one.estimate.high - one.estimate.low == pytest.approx(0.0, abs=1e-12)
    assert one.mean_b - one.mean_a == pytest.approx(0.5)


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, drawn(at), seeds=(0,)) for at, name in enumerate("ab"))
    found = compare_sides(a, b)
    assert not loss_of(found).estimate.bounded
    assert "Intervals of B − A: none, of one seed." in closing_lines(found)


def test_what_has_no_counterpart_is_counted(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0), n=(1, 2))
    b = write_run(tmp_path / "b", drawn(1), n=(2,), seeds=(1, 2, 3))
    found = compare_sides(a, b)
    assert (found.pairs.both, found.alone_in_a, found.alone_in_b) == (4, 8, 2)
    [said] = [line for line in opening_lines(found) if "pairs" in line]
    assert said.startswith("4 pairs of cells with the same n, snr and seed.")
    assert said.endswith("Without a counterpart: 8 cells of A, 2 cells of B.")


def test_a_setting_that_differs_is_what_is_compared(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", drawn(1), mood="prints")
    found = compare_sides(a, b)
    assert found.settings == {"mood": ("well", "prints")}
    assert "mood: well in A, prints in B." in opening_lines(found)
    assert found.pairs.both == 12


def test_what_varies_in_one_run_is_paired_where_the_two_agree(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", drawn(1), snr=(2.0,))
    found = compare_sides(a, b)
    expected = (DRAWS[1] - DRAWS[0])[:, :, 1].mean()
    assert loss_of(found).estimate.value == pytest.approx(expected)
    assert (found.settings, found.pairs.both) == ({}, 6)


def test_conditions_choose_cells_of_both_or_of_one(two: tuple[Path, Path]) -> None:
    found = compare_sides(*two, where=["n=2"])
    assert loss_of(found).estimate.value == pytest.approx((DRAWS[1] - DRAWS[0])[:, 1].mean())
    same = compare_sides(two[0], two[0], where_a=["snr=1"], where_b=["snr=2"])
    expected = (DRAWS[0][:, :, 1] - DRAWS[0][:, :, 0]).mean()
    assert loss_of(same).estimate.value == pytest.approx(expected)
    assert same.settings == {"snr": (1.0, 2.0)}
    assert opening_lines(same)[:2] == [
        "A: a (snr=1), 6 cells of toy.",
        "B: a (snr=2), 6 cells of toy.",
    ]


def test_a_run_compared_with_itself_is_the_same(two: tuple[Path, Path]) -> None:
    found = compare_sides(two[0], two[0])
    assert all(one.is_none for one in found.differences)
    assert closing_lines(found)[0] == "The same in all 12 pairs: test_loss, steps."
    assert found.beyond(0.0) == []


def test_columns_that_one_side_has_alone_are_told_and_those_of_no_number_are_not(
    tmp_path: Path,
) -> None:
    a = write_run(tmp_path / "a", lambda *_: {"test_loss": 1.0, "draw": 0.5})
    b = write_run(tmp_path / "b", lambda *_: {"test_loss": 1.0})
    found = compare_sides(a, b)
    assert [one.column for one in found.differences] == ["test_loss", "steps"]
    assert (found.only_in_a, found.only_in_b) == (("draw",), ())
    assert found.beyond(0.0) == ["draw, of which B has no number"]
    assert compare_sides(b, a).beyond(0.0) == [], "what B measures besides is no loss"
    with pytest.raises(UserError, match=r"value='draw': B .*b has no number of it"):
        compare_sides(a, b, ["draw"])
    with pytest.raises(UserError, match=r"toy measures no 'tset_loss'; did you mean 'test_loss'"):
        compare_sides(a, b, ["tset_loss"])


def test_a_number_that_one_cell_of_a_pair_lacks_is_counted(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", lambda *_: {"test_loss": 1.0, "draw": 0.5})
    b = write_run(
        tmp_path / "b",
        lambda n, snr, seed: {"test_loss": 1.0} if seed else {"test_loss": 1.0, "draw": 0.5},
    )
    found = compare_sides(a, b, ["draw"])
    assert (found.differences[0].pairs, found.differences[0].lone) == (4, 8)
    assert found.beyond(1.0) == ["8 numbers of draw on one side alone"]
    assert not found.differences[0].is_none


def test_verdicts_are_compared_on_the_same_choice_of_cells(tmp_path: Path) -> None:
    """The toy's claim fails where the least test loss is below 0.1."""
    a = write_run(tmp_path / "a", loss(lambda n, *_: 0.2))
    b = write_run(tmp_path / "b", loss(lambda n, *_: 0.2 if n == 1 else 0.05))
    [one] = compare_sides(a, b).verdicts
    assert (one.claim, one.a.verdict, one.b.verdict) == ("toy-claim", "holds", "fails")
    assert (one.a.value, one.b.value) == (0.2, 0.05)
    assert one.changed
    [chosen] = compare_sides(a, b, where=["n=1"]).verdicts
    assert not chosen.changed


def test_runs_of_two_numerical_versions_are_compared_and_not_judged(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", loss(lambda *_: 0.2))
    with mock.patch.object(type(TOY), "version", 2):
        new = write_run(tmp_path / "new", loss(lambda *_: 0.25))
        found = compare_sides(old, new)
        newer = compare_sides(new, old)
        opened, closed = opening_lines(found), closing_lines(found)
    assert loss_of(found).estimate.value == pytest.approx(0.05)
    assert loss_of(newer).estimate.value == pytest.approx(-0.05)
    assert found.pairs.both == 12
    assert found.verdicts == ()
    assert opened[0] == "A: old, 12 cells of toy, of version 1."
    assert closed[-1] == (
        "Verdicts aren't compared: cells are of another version than the claims, A's of 1 and the "
        "claims of 2."
    )


def test_what_is_beyond_a_tolerance_is_named(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", loss(lambda *_: 0.2))
    b = write_run(
        tmp_path / "b", lambda n, snr, seed: None if snr == 2 else {"test_loss": 0.2 - 0.15 * seed}
    )
    c = write_run(tmp_path / "c", loss(lambda *_: 0.2 + 1e-9), seeds=(0, 1))
    assert compare_sides(a, a).beyond(0.0) == []
    assert compare_sides(a, b).beyond(0.25) == [
        "test_loss by up to 0.3",
        "6 cells failed on one side alone",
        "1 verdict",
    ]
    assert compare_sides(a, b).beyond(0.35)[0] != "test_loss by up to 0.3"
    assert compare_sides(a, c).beyond(1e-8) == ["4 cells without a counterpart"]
    assert compare_sides(a, c, where=["seed=0:1"]).beyond(1e-8) == []


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", drawn(0))
    b = write_run(tmp_path / "b", loss(lambda *_: 0.2), n=(1,), snr=(3.0, 4.0))
    with pytest.raises(UserError) as refused:
        compare_sides(a, b)
    assert str(refused.value) == (
        f"B {b}: no cell of it has a counterpart: snr is 1, 2 in A and 3, 4 in B; choose one value "
        "on each side with --where-a snr=1.0 --where-b snr=3.0."
    )
    assert compare_sides(a, b, where_a=["snr=1.0"], where_b=["snr=3.0"]).pairs.both == 3
    with pytest.raises(UserError, match=r"A=.*none.: there is no such directory"):
        compare_sides(tmp_path / "none", b)
    with pytest.raises(UserError, match=r"B=.*none.: there is no such directory"):
        compare_sides(a, tmp_path / "none")
    with pytest.raises(UserError, match=r"where_b='n=9': no cell has that; there is 1"):
        compare_sides(a, b, where_b=["n=9"])


def test_a_setting_that_no_cell_shares_is_named_with_the_option_that_helps(tmp_path: Path) -> None:
    """B varies what A has one value of: between one value there is nothing to interpolate."""
    a = write_run(tmp_path / "a", drawn(0), pause=1)
    b = write_run(tmp_path / "b", drawn(1), pause=0.5)
    write_run(b, drawn(1), pause=2)
    said = (
        f"B {b}: no cell of it has a counterpart: pause is 1 in A and 0.5, 2 in B; choose one "
        "value on each side with --where-b pause=0.5."
    )
    for interpolated in (False, True):
        with pytest.raises(UserError) as refused:
            compare_sides(a, b, interpolated=interpolated)
        assert str(refused.value) == said
    found = compare_sides(a, b, where_b=["pause=0.5"])
    assert (found.settings, found.pairs.both) == ({"pause": (1.0, 0.5)}, 12)


def test_words_and_long_lists_that_no_cell_shares_are_named(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", loss(lambda *_: 1), n=(1, 2, 3, 4, 5), mood="prints")
    b = write_run(tmp_path / "b", loss(lambda *_: 1), n=(6,))
    write_run(b, loss(lambda *_: 1), n=(6,), mood="raises")
    with pytest.raises(UserError) as refused:
        compare_sides(a, b)
    assert str(refused.value) == (
        f"B {b}: no cell of it has a counterpart: n is 1 to 5 in A and 6 in B; mood is prints in A "
        "and raises, well in B; choose one value on each side with --where-a n=1 --where-b "
        "mood=raises."
    )


def test_cells_that_share_every_value_and_no_place_are_told_so(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", loss(lambda *_: 1), n=(1,), snr=(1.0,))
    write_run(a, loss(lambda *_: 1), n=(2,), snr=(2.0,))
    b = write_run(tmp_path / "b", loss(lambda *_: 1), n=(1,), snr=(2.0,))
    with pytest.raises(UserError, match=r"has the seed and the values of n, snr of a cell of A\.$"):
        compare_sides(a, b)
