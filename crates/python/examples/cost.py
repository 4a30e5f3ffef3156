"""What a run of a sweep costs, part by part, on this machine: what a large sweep is reckoned with.

    pip install simnel pyarrow distributed ray
    python cost.py
"""

import logging
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path

import simnel
from simnel import cluster

RUNS = 20_000
TASKS = 2_000
LINE = simnel.Line(down="20mbit", up="3mbit", rtt="90ms")


def microseconds(began, count):
    """Processor time of this process, Dask's scheduler included."""
    return (time.process_time() - began) / count * 1e6


class Known:
    """An executor that gives about the first run's results for all: what is left is the caller's work."""

    values, done = None, 0

    def submit(self, work, jobs):
        if self.values is None:
            self.values = work(jobs[:1])[0]
        future = Future()
        future.set_result([self.similar() for _ in jobs])
        return future

    def similar(self):
        self.done += 1
        return {name: value * (1 + self.done * 1e-9) for name, value in self.values.items()}


def nothing(jobs, stop=None):
    return jobs


def per_task(executor):
    began = time.process_time()
    for future in [executor.submit(nothing, [n]) for n in range(TASKS)]:
        future.result()
    return microseconds(began, TASKS)


def main():
    scenario = simnel.Scenario.of(LINE)
    began = time.process_time()
    for seed in range(1, 21):
        scenario._read.measure("cake bandwidth {rate}", seed)
    print(f"a run of 30 s at 20/3 Mbit/s with nine flows: {microseconds(began, 20) / 1e3:.1f} ms of a core")
    with tempfile.TemporaryDirectory() as to:
        began = time.process_time()
        over = {"rtt": ["90ms"], "qdisc": ["cake bandwidth {rate}"]}
        simnel.sweep(
            LINE, over=over, repetitions=RUNS, executor=Known(), batch=100, to=to, progress=False
        )
        size = sum(part.stat().st_size for part in Path(to).glob("part-*")) / RUNS
        print(f"handed out, taken in and written: {microseconds(began, RUNS):.0f} µs, {size:.0f} bytes")

    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
    ) as local, Client(local) as client:
        per_task(cluster.Dask(client))
        print(f"a task of Dask: {per_task(cluster.Dask(client)):.0f} µs")

    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    executor = cluster.Ray()
    per_task(executor)
    print(f"a task of Ray: {per_task(executor):.0f} µs")


if __name__ == "__main__":
    main()
