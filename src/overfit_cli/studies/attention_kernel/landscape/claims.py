"""The claims."""

from overfit_cli.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
