"""A sweep on a Slurm cluster, started on its login node.

    pip install simnel dask-jobqueue pyarrow        # where all nodes see it
    python slurm.py

A hundred jobs of 32 cores. A job that Slurm ends is replaced, and its runs are done again; if this
program ends, the same command goes on with the runs that `runs/` does not have.
"""

from dask_jobqueue.slurm import SLURMCluster
from distributed import Client

import simnel

JOBS = 100
CORES = 32


def cluster():
    # A process a core: a run keeps one busy. The interpreter is free meanwhile, so threads do, too.
    return SLURMCluster(
        queue="normal", cores=CORES, processes=1, memory="32GB", walltime="01:00:00"
    )


def main():
    with cluster() as jobs, Client(jobs) as client:
        jobs.adapt(maximum_jobs=JOBS)
        runs = simnel.sweep(
            simnel.Scenario.from_file("scenarios/rrul.toml"),
            over={
                "rate": simnel.geomspace("1mbit", "100mbit", 50),
                "rtt": simnel.geomspace("1ms", "500ms", 50),
                "qdisc": ["cake bandwidth {rate}", "fq_codel", "codel", "pie"],
            },
            repetitions=100,
            executor=client,
            batch=100,
            to="runs",
        )
        print(f"{runs.count_rows()} runs in runs/")


if __name__ == "__main__":
    main()
