"""The kept results, for tests that hold the code to them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
RUNS = sorted(path.parent for path in RESULTS.glob("*/cells"))


def kept_claims() -> Mapping[str, list[dict[str, Any]]]:
    """The claims of the kept report by the run directory that decides them; `` without one."""
    content = json.loads((RESULTS / "report" / "claims.json").read_text(encoding="utf-8"))
    claims = defaultdict(list)
    for claim in content["claims"]:
        claims[Path(claim["directory"] or "").name].append(claim)
    return claims
