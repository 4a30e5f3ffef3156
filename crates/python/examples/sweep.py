"""A sweep on the Ray cluster that this runs on (kubernetes.yaml); on this machine, if on none.

    python sweep.py DIRECTORY
"""

import sys

import simnel
from simnel import cluster

LINE = simnel.Line(down="20mbit", up="3mbit", rtt="90ms")
OVER = {
    "rtt": simnel.geomspace("10ms", "500ms", 8),
    "qdisc": ["cake bandwidth {rate}", "fq_codel", "pfifo limit 1000"],
}


def main():
    runs = simnel.sweep(LINE, over=OVER, executor=cluster.Ray(), batch=10, to=sys.argv[1])
    print(f"{runs.count_rows()} runs in {sys.argv[1]}")


if __name__ == "__main__":
    main()
