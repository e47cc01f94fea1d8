"""The numbers in the lemmas and propositions on the stages of training, from logged steps.

What wins is the signal where overfitting is benign and token 2 where it is harmful (Jiang et al.
2024, section 5 and appendices D and E). Its lead is its value over the greatest other value of its
sample, at the worst sample.

- Stage 1 ends at the first step with a lead of 3M (Lemmas 5.2 and E.3).
- Stage 2 lasts while −ℓ′ is 1/2 − o(1) (Lemma 5.3): here while its mean is above 0.4.
- Stage 3 lasts until the training loss is ε.

A power is that of the steps since a stage began in what is added since then, in the second half of
the stage. A number is nan where the steps don't tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from overfit_cli.claims.cells import is_unknown
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Measurement, UndecidedError
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.studies.benign_vit.parameters import (
    TOKEN_CLASSES,
    BenignVitParameters,
    weight_deviations,
)
from overfit_cli.studies.benign_vit.theory import predicted_regime

if TYPE_CHECKING:
    import pandas as pd

STAGE_2_SLOPE = 0.4

LEAST_LOGGED = 8
"""The fewest logged steps of a stage that tell a power."""

NOTHING = 1e-12
"""The value for a ratio of at most zero, so that it has a logarithm."""


def numbers(*names: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what makes of logged steps a row for each cell: its last step, and these numbers."""

    def rows(steps: pd.DataFrame) -> pd.DataFrame:
        found = {key: Stages.of(of_cell) for key, of_cell in steps.groupby("key")}
        last = steps.sort_values("step").drop_duplicates("key", keep="last")
        whole = (last["step"] == last["steps"]).to_numpy()
        named = {name: [getattr(found[key], name)() for key in last["key"]] for name in names}
        return last.assign(**{name: np.where(whole, each, np.nan) for name, each in named.items()})

    return rows


def until_stage_2_ends(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the least lead from T₁ on, of the cells in which T₁ isn't known to come too late."""
    rows = numbers("lead", "stage_2_over_t1")(steps)
    late = rows["stage_2_over_t1"] < 1
    if late.all():
        why = "T₁ comes after stage 2 in every cell: nothing lies in between."
        raise UndecidedError(Measurement(verdict="vacuous", note=why))
    chosen: pd.DataFrame = rows[~late]
    return chosen


def outgrown(pairs: Sequence[tuple[str, str]]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what makes of logged steps a row for each cell: how columns outgrow others.

    Of pairs of columns, (grows, other), at the worst pair:

    - `growth`: what the first one grows by from the first step to the last, or by how much more
      than the other where that is less. A cell that is not fitted has grown by nothing; of one that
      failed for another reason, or made no step, nothing is known.
    - `ahead`: the share of logged steps at which the first one has grown more.
    - `fall`: the furthest that it falls below an earlier step, over its rise.

    The other one is taken by its size; so is what grows, but for a signal's value, which is to have
    its label's sign.
    """

    def rows(steps: pd.DataFrame) -> pd.DataFrame:
        ordered = steps.sort_values(["key", "step"])
        first, last = (ordered.drop_duplicates("key", keep=end) for end in ("first", "last"))
        whole = (first["step"].to_numpy() == 0) & (last["step"] == last["steps"]).to_numpy()
        whole &= (last["step"] > 0).to_numpy() & ~is_unknown(last).to_numpy()
        cells = [of_cell for _, of_cell in ordered.groupby("key")]
        found = [[_outgrown(of_cell, *pair) for pair in pairs] for of_cell in cells]
        growth, ahead, fall = np.where(whole, np.min(found, axis=1).T, np.nan)
        growth[whole & (last["status"] != "done").to_numpy()] = 0.0
        status = last["status"].where(is_unknown(last), "done")
        leads = [name for name in ("signal_lead", "noise_lead") if name in last]
        ends = {name: last[name].where(whole) for name in leads}
        return last.assign(**ends, growth=growth, ahead=ahead, fall=-fall, status=status)

    return rows


def _outgrown(steps: pd.DataFrame, grows: str, other: str) -> tuple[float, float, float]:
    """The growth of a column, the share of steps at which it is ahead, and less its fall."""
    own, rival = (steps[name].to_numpy(np.float64) for name in (grows, other))
    own = -own if grows == "value_minus" else own
    rival = np.abs(rival) if other.startswith("value_") else rival
    own, rival = own - own[0], rival - rival[0]
    fall = np.max(np.maximum.accumulate(own) - own) / max(np.max(own), NOTHING)
    ahead = np.sum(own > rival) / max(len(own) - 1, 1)
    return float(min(own[-1], own[-1] - rival[-1])), float(ahead), -float(fall)


class Stages:
    """The logged steps of a cell, in order, and the ends of its stages.

    Attributes:
        wins: `signal` or `noise`, the class of the token that wins.
        first, second: the steps at which stages 1 and 2 end; nan where one never does.
    """

    def __init__(self, steps: pd.DataFrame, p: BenignVitParameters) -> None:
        self._steps, self.p = steps, p
        self.is_benign = predicted_regime(p) == "benign"
        self.wins = "signal" if self.is_benign else "noise"
        self.step, self.leads = self["step"], self[f"{self.wins}_lead"]
        ends = self.leads >= 3 * p.tokens, self["loss_slope"] < STAGE_2_SLOPE
        self.first, self.second = (min(self.step[end], default=math.nan) for end in ends)

    @classmethod
    def of(cls, steps: pd.DataFrame) -> Stages:
        """Return those of the logged steps of a cell."""
        p = parameters_from_row(BenignVitParameters, steps.iloc[0])
        return cls(steps.sort_values("step"), p)

    def __getitem__(self, column: str) -> Floats:
        """A logged column, (steps,)."""
        return self._steps[column].to_numpy(dtype=np.float64)

    # Leads of what wins

    def t1(self) -> float:
        """T₁ of Lemma 5.2 or E.3, as printed; infinite where it isn't positive."""
        p, strong = self.p, self.p.strong_noise**2
        if self.is_benign:
            factor = 10.0
            rate = p.n * p.signal_norm**2 - 60 * p.tokens**2 * strong * p.noise_norm**2
        else:
            factor, rate = 4.0, (strong - 24 * p.tokens) * p.noise_norm**2
        common = p.learning_rate * p.d_h**0.25 * p.output_scale**2
        steps = factor * p.tokens * (3 * p.tokens + 1) * p.n
        return steps / (common * rate) if rate > 0 else math.inf

    def stage_2_over_t1(self) -> float:
        """The end of stage 2 over T₁, which lemmas place in stage 1."""
        return math.nan if np.isnan(self["loss_slope"]).any() else self.second / self.t1()

    def lead(self) -> float:
        """The least lead from T₁ as printed until stage 2 ends, over 3M."""
        after = self.step >= self.t1()
        if math.isnan(self.second) or np.isnan(self.leads[after]).any():
            return math.nan
        return self._least_lead(after & (self.step <= self.second))

    def stage_3_lead(self) -> float:
        """The least lead in stage 3, over 3M."""
        return self._least_lead(self._stage(3))

    def _least_lead(self, chosen: NDArray[np.bool_]) -> float:
        least = min(self.leads[chosen], default=math.nan)
        return max(least, NOTHING) / (3 * self.p.tokens) if not math.isnan(least) else math.nan

    # Powers

    def _stage(self, stage: int) -> NDArray[np.bool_]:
        """Which logged steps lie in stage 2 or 3; none where the stage before doesn't end."""
        known = not np.isnan([self.leads, self["loss_slope"]]).any() and not math.isnan(self.first)
        within = (self.first <= self.step) & (self.step <= self.second)
        return np.asarray(known & (within if stage == 2 else self.step >= self.second))

    def _power(self, stage: int, grown: Floats) -> float:
        """The power of the steps of a stage in what is added; 0 where nothing is."""
        chosen = self._stage(stage)
        if chosen.sum() < LEAST_LOGGED:
            return math.nan
        since, added = (each[chosen][1:] - each[chosen][0] for each in (self.step, grown))
        late = since >= since[-1] / 2
        if late.sum() < LEAST_LOGGED // 2 or np.isnan(added).any():
            return math.nan
        if (added[late] <= 0).any():
            return 0.0
        return float(np.polyfit(np.log(since[late]), np.log(added[late]), 1)[0])

    def _winners(self) -> list[Floats]:
        """V₊ and −V₋; on the harmful side token 2's mean size."""
        if self.is_benign:
            return [self["value_plus"], -self["value_minus"]]
        return [self["value_noise"]]

    def slower_value(self) -> float:
        """The power of t − T₁ in what wins over stage 2, of the slower signal."""
        return float(np.min([self._power(2, grown) for grown in self._winners()]))

    def faster_value(self) -> float:
        """The same of the faster signal."""
        return float(np.max([self._power(2, grown) for grown in self._winners()]))

    def stage_3_value(self) -> float:
        """The power of t − T₂ in exp(V₊) and exp(−V₋), the lesser; harmful: in exp(y V₂)."""
        values = self._winners() if self.is_benign else [self["strong_value_least"]]
        return float(np.min([self._power(3, np.exp(value)) for value in values]))

    def signal_query(self) -> float:
        """The power in exp(Λ), harmful exp(Ψ), over stage 2, of the + signal's query in the mean.

        Λ is ⟨q, k₊⟩ − ⟨q, k₂⟩, and Ψ is −Λ.
        """
        return self._of_query("signal")

    def noise_query(self) -> float:
        """The same of token 2's query."""
        return self._of_query("noise")

    def _of_query(self, query: str) -> float:
        gap = self[f"product_{query}_signal"] - self[f"product_{query}_noise"]
        return self._power(2, np.exp(gap if self.is_benign else -gap))

    def every_query(self) -> float:
        """The same at the worst sample, token and key of each class of query, the least."""
        gaps = [self[f"{self.wins}_gap_{source}"] for source in TOKEN_CLASSES]
        return float(np.min([self._power(2, np.exp(gap)) for gap in gaps]))

    # What happens up to T₀ or T₁, or in all of training

    def first_value(self) -> float:
        """The largest value up to T₀ over its bound: Lemma C.2's tail, and d_h^(−1/4) learned.

        T₀ is that of Lemma D.3 or E.1 with a constant of 1, so that what wins learns d_h^(−1/4);
        with σ̃_p² on the harmful side. The tail is 2σ_V‖w_O‖s √(log(2NM/δ)) of the longest token, s.
        """
        p, added = self.p, self.p.d_h**-0.25
        learned = p.signal_norm**2 if self.is_benign else p.strong_noise_norm**2 / p.n
        before = self.step <= added / (p.learning_rate * learned * p.output_scale**2)
        _, sigma_v = weight_deviations(p)
        longest = max(p.signal_norm, p.strong_noise_norm)
        root = math.sqrt(math.log(2.0 * p.n * p.tokens * p.d))
        tail = 2 * sigma_v * p.output_scale * longest * root
        largest = [np.max(self[f"{kind}_value_most"][before]) for kind in ("noise", "rest")]
        return float(np.max(largest) / (tail + added))

    def _off(self) -> Floats:
        """The most that a class's attention on a token differs from 1/M, times M, (steps,)."""
        m = self.p.tokens
        counts = {"signal": 1, "noise": 1, "rest": m - 2}
        gone = [
            np.abs(m * self[f"attention_{source}_{target}"] / count - 1)
            for source in TOKEN_CLASSES
            for target, count in counts.items()
            if count
        ]
        return np.asarray(np.max(gone, axis=0))

    def attention_off(self) -> float:
        """The most that a class's attention on a token differs from 1/M up to T₁, times M."""
        return float(np.max(self._off()[self.step <= self.t1()]))

    def leaving(self) -> float:
        """The step at which a class's attention first is half of 1/M off it, over T₁.

        It is interpolated between logged steps.
        """
        off = self._off()
        [gone] = np.nonzero(off >= 1 / 2)
        if not len(gone) or not gone[0] or np.isnan(off[: gone[0]]).any():
            return math.nan
        around = slice(gone[0] - 1, gone[0] + 1)
        return float(np.interp(1 / 2, off[around], self.step[around]) / self.t1())

    def rise(self) -> float:
        """The least that scores move as a proposition says from T₁ on, over the largest one."""
        moves = self[f"{self.wins}_score_rise"] / self["score_most"]
        moves = moves[self.step >= self.t1()]
        return float(np.min(moves)) if len(moves) else math.nan

    def stage_3_attention(self) -> float:
        """The least attention that a class of query pays to what wins in stage 3."""
        paid = [self[f"attention_{source}_{self.wins}"] for source in TOKEN_CLASSES]
        return float(min(np.min(paid, axis=0)[self._stage(3)], default=math.nan))

    def norm_change(self) -> float:
        """The factor by which ‖q‖² or ‖k‖² of a token differs most from its first, less 1."""
        factors = [np.max(self["head_norm_most"]), 1 / np.min(self["head_norm_least"])]
        return float(np.max(factors)) - 1

    def move(self) -> float:
        """The furthest that training moved a product of tokens that meet in no sample."""
        return float(np.max(self["stray_product_move"]))

    def score_over_bound(self) -> float:
        """The largest score over log(√d_h) in stage 2, or over log(√d_h/ε) after it.

        On the harmful side the bound is that of Ψ, the range of a token's scores.
        """
        sizes = self["score_most" if self.is_benign else "score_range_most"]
        root, before = math.log(self.p.d_h) / 2, self.step <= self.second
        if not before.any():
            return math.nan
        after = root - math.log(self.p.epsilon)
        return float(np.max([np.max(sizes[before]) / root, np.max(sizes) / after]))

    def value_over_bound(self) -> float:
        """The largest value of a noise token over 2 log(1/ε), over all steps."""
        return float(np.max(self["noise_value_most"]) / (-2 * math.log(self.p.epsilon)))
