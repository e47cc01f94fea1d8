"""The claims of Cao et al. 2024 on convergence and kernels."""

from __future__ import annotations

from overfit_cli.studies.softmax_network.convergence.claims.bounds import BOUND_CLAIMS
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    KERNEL_CLAIMS,
    POWER_CLAIMS,
)
from overfit_cli.studies.softmax_network.convergence.claims.lambdas import LAMBDA_CLAIMS
from overfit_cli.studies.softmax_network.convergence.claims.perturbation import PERTURBATION_CLAIMS
from overfit_cli.studies.softmax_network.convergence.claims.table1 import TABLE_CLAIMS

CLAIMS = (
    *KERNEL_CLAIMS,
    *TABLE_CLAIMS,
    *LAMBDA_CLAIMS,
    *POWER_CLAIMS,
    *BOUND_CLAIMS,
    *PERTURBATION_CLAIMS,
)
