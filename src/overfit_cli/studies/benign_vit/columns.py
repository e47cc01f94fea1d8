"""The columns of `benign-vit`: of a cell, and of each logged step.

Token classes in columns: the signal (token 1), the noise (token 2, the strong one) and the rest
(tokens 3 to M).
"""

from __future__ import annotations

from overfit_cli.core.cell import Column
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES

_LOSSES = (
    Column("train_loss", "training loss", symbol="L_S", diverges=True),
    Column("test_loss", "test loss", symbol="L_D", diverges=True),
    Column("test_error", "test error", diverges=True),
)
_TRAIN_MARGINS = (
    Column("train_margin", "mean training margin", symbol="y f(X)"),
    Column("train_margin_min", "smallest training margin"),
)
_VALUES = (
    Column("value_plus", "value of the + signal", symbol=r"\mu_+^\top W_V w_O"),
    Column("value_minus", "value of the − signal", symbol=r"\mu_-^\top W_V w_O"),
    Column(
        "value_noise",
        "mean size of the noise's value",
        symbol=r"|\xi_2^\top W_V w_O|",
        label="mean size of noise's value",
    ),
)

MEASUREMENTS = (
    *_LOSSES,
    Column(
        "label_imbalance",
        "how lopsided the training labels are: 0 is balanced, 1 one class",
        label="label imbalance",
    ),
    Column(
        "updates",
        "gradients computed: one a step, or one for many where `leap` allows",
        label="gradients computed",
    ),
    *_TRAIN_MARGINS,
    Column("test_margin", "mean test margin"),
    Column(
        "train_attention_signal",
        "training attention on the signal",
        symbol=r"\bar{a}_{\mathrm{train}}",
        label="training attention on signal",
    ),
    Column(
        "train_attention_noise",
        "training attention on token 2",
        label="training attention on noise",
    ),
    Column(
        "test_attention_signal", "test attention on the signal", label="test attention on signal"
    ),
    Column("test_attention_noise", "test attention on token 2", label="test attention on noise"),
    Column(
        "test_signal_attention_min",
        "attention of the signal on itself, at the worst test sample",
        label="signal's least attention",
    ),
    Column(
        "test_noise_value_max",
        "largest size of the value of a test sample's noise token",
        label="largest value of test noise",
    ),
    *_VALUES,
    Column(
        "output_norm",
        "norm of the fixed output layer",
        symbol=r"\Vert w_O\Vert",
        label="norm of fixed output layer",
    ),
)

_INDICES = (("signal", "+"), ("noise", "n,2"))

TRAJECTORY = (
    *_LOSSES,
    *_TRAIN_MARGINS,
    Column(
        "attention_signal",
        "attention on the signal, of all tokens",
        label="attention on the signal",
    ),
    Column("attention_noise", "attention on token 2, of all tokens", label="attention on token 2"),
    *_VALUES,
    *(
        Column(
            f"product_{source}_{target}",
            f"{source} query, {target} key",
            symbol=rf"\langle q_{{{index_of}}}, k_{{{index_by}}}\rangle",
            label=f"{source} query · {target} key",
        )
        for source, index_of in _INDICES
        for target, index_by in _INDICES
    ),
    Column("loss_slope", "mean slope of the loss", symbol=r"-\ell'(y f)"),
    Column(
        "signal_lead",
        "signal value over the greatest noise value, at the worst sample",
        label="least lead of the signal",
    ),
    Column(
        "noise_lead",
        "value of token 2 over the greatest other value, at the worst sample",
        label="least lead of token 2",
    ),
    *(
        Column(
            f"attention_{source}_{target}",
            f"attention of the {source} on the {target}",
            label=f"{source}'s attention on {target}",
        )
        for source in TOKEN_CLASSES
        for target in TOKEN_CLASSES
    ),
    *(
        Column(
            f"{wins}_gap_{source}",
            f"score of the {source} with the {wins} less any other, at the worst token",
            label=f"{source}'s least gap to {wins}",
        )
        for wins in ("signal", "noise")
        for source in TOKEN_CLASSES
    ),
    Column(
        "signal_score_rise",
        "least rise of a score with the signal, or fall of another, since the last logged step",
        label="least rise to the signal",
    ),
    Column(
        "noise_score_rise",
        "least rise of a score with token 2, less twice another's, since the last logged step",
        label="least rise to token 2",
    ),
    Column(
        "head_norm_least",
        "square of a query or key over its first, the least token",
        label="least relative norm",
    ),
    Column(
        "head_norm_most",
        "square of a query or key over its first, the most",
        label="largest relative norm",
    ),
    Column(
        "stray_product_move",
        "how far training moved a product of two queries, two keys, or tokens of different samples",
        label="largest move of a product",
    ),
    Column("score_most", "size of a score, the largest", label="largest score"),
    Column(
        "score_range_most",
        "range of a token's scores, the largest",
        label="largest range of scores",
    ),
    Column(
        "noise_value_most",
        "size of a noise token's value, the largest",
        label="largest noise value",
    ),
    Column(
        "rest_value_most",
        "size of a value other than token 2's, the largest",
        label="largest other value",
    ),
    Column(
        "strong_value_least",
        "value of token 2 times the label, the least sample",
        label="least value of token 2",
    ),
)
