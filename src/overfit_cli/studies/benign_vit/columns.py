"""Columns of a cell's measurements and of its trajectory (Jiang et al. 2024, sections 5 and 6).

Token classes: the signal (token 1), the noise (token 2, the strong one) and the rest (3 to M).
"""

from __future__ import annotations

from overfit_cli.core.study import Column

_LOSSES = (
    Column("train_loss", "training loss", symbol="L_S"),
    Column("test_loss", "test loss", symbol="L_D"),
    Column("test_error", "test error"),
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
    *_VALUES,
    Column(
        "output_norm",
        "norm of the fixed output layer",
        symbol=r"\Vert w_O\Vert",
        label="norm of fixed output layer",
    ),
)

TOKEN_CLASSES = ("signal", "noise", "rest")
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
            f"product_{of}_{by}",
            f"{of} query, {by} key",
            symbol=rf"\langle q_{{{index_of}}}, k_{{{index_by}}}\rangle",
            label=f"{of} query · {by} key",
        )
        for of, index_of in _INDICES
        for by, index_by in _INDICES
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
    Column(
        "gamma_plus",
        "what training added to the + signal's value",
        symbol=r"\gamma_{V,+}",
        label="gain of the + signal's value",
    ),
    Column(
        "gamma_minus",
        "what training added to the − signal's value",
        symbol=r"\gamma_{V,-}",
        label="gain of the − signal's value",
    ),
    Column(
        "rho_noise",
        "what training added to the value of token 2, times the label",
        symbol=r"y_n \rho_{V,n,2}",
        label="gain of token 2's value",
    ),
    *(
        Column(
            f"{name}_{of}_{by}",
            f"what a step adds to the {of} {added_to}, by the {by} {added}",
            symbol=rf"\{name}_{{{index_of},{index_by}}}",
            label=f"step of the {of} {added_to}",
        )
        for name, added_to, added in (("alpha", "query", "key"), ("beta", "key", "query"))
        for of, index_of in _INDICES
        for by, index_by in _INDICES
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
)
