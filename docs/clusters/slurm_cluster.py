"""Keeps twenty dask workers as SLURM jobs until Enter is pressed."""

from dask_jobqueue import SLURMCluster

with SLURMCluster(cores=1, processes=1, memory="2GB", walltime="01:00:00") as cluster:
    cluster.scale(jobs=20)
    print("--backend dask --address", cluster.scheduler_address, flush=True)
    input("Enter ends the workers.\n")
