"""Mathematical symbols for terminals and documents, from the mathtext that figures use."""

from __future__ import annotations

import re

_LETTERS = {
    "alpha": "α",
    "epsilon": "ε",
    "eta": "η",
    "gamma": "γ",
    "langle": "⟨",
    "lambda": "λ",
    "mu": "μ",
    "rangle": "⟩",
    "rho": "ρ",
    "sigma": "σ",
    "top": "ᵀ",
    "Vert": "‖",
    "xi": "ξ",
    "zeta": "ζ",
}


def plain(symbol: str) -> str:
    r"""Return a mathtext symbol in plain Unicode: `\tilde{\sigma}_p` becomes `σ̃_p`."""
    text = re.sub(r"\\mathrm\{(.*?)\}", r"\1", symbol)
    text = re.sub(r"\\([A-Za-z]+) ?", lambda found: _LETTERS.get(found[1], found[0]), text)
    text = re.sub(r"\\tilde\{(.)\}", "\\1\N{COMBINING TILDE}", text)
    return re.sub(r"\^?\{(.*?)\}", r"\1", text).replace("^ᵀ", "ᵀ")
