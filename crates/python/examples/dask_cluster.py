"""A sweep on a cluster of Dask, one of whose workers dies half-way.

    pip install simnel distributed
    python dask_cluster.py

Here the cluster is two processes of this machine; `Client("tcp://scheduler:8786")` is one of any
size. What a dead worker had is done by another, and each run is in the table once.
"""

import os

from distributed import Client, LocalCluster

import simnel

LINE = simnel.Line(down="20mbit", up="3mbit", rtt="90ms")
OVER = {
    "rtt": simnel.geomspace("10ms", "500ms", 8),
    "qdisc": ["cake bandwidth {rate}", "fq_codel", "pfifo limit 1000"],
}


def sweep(executor=None):
    return simnel.sweep(LINE, over=OVER, repetitions=10, executor=executor)


class Deadly:
    """An executor whose first worker dies once a fifth of the runs has been handed out."""

    def __init__(self, client, cluster):
        self.executor = client.get_executor(retries=3)
        self.process = cluster.workers[0].pid
        self.handed_out = 0

    def submit(self, work, *arguments):
        self.handed_out += 1
        if self.handed_out == 48:
            os.kill(self.process, 9)
        return self.executor.submit(work, *arguments)


def main():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            executor = Deadly(client, cluster)
            table = sweep(executor)
            print(f"{executor.handed_out} runs handed out, a worker killed: {table}")
    runs = set(zip(table["rtt"], table["qdisc"], table["seed"]))
    assert len(runs) == len(table) == 240, "each run once"
    assert table.to_dict() == sweep().to_dict(), "the same as on this machine's threads"
    print("each run once, and all as without a cluster")


if __name__ == "__main__":
    main()
