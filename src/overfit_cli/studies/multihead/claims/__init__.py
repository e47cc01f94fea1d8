"""The claims of Deora et al. 2024, by sections of the paper, and by the study that judges them."""

from overfit_cli.studies.multihead.claims import first_phase, theorems, training

MIXTURE = (*training.mixture.claims, *theorems.mixture.claims, *first_phase.mixture.claims)
PLANTED = training.planted.claims
PATHS = theorems.paths.claims
SST2 = training.sst2.claims
