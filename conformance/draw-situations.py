#!/usr/bin/env python3
"""Draws situations that nobody chose, for record-linux.py: one or many transfers, up, down or both,
of each congestion control, alone or mixed, through each discipline.

    conformance/draw-situations.py SEED COUNT > SITUATIONS.json
    conformance/record-linux.py KERNEL SITUATIONS.json OUT
    simnel conformance linux OUT
"""

import json
import random
import sys

DISCIPLINES = [
    "pfifo limit 30", "pfifo limit 60", "pfifo limit 150", "pfifo limit 300", "pfifo limit 600",
    "codel", "fq_codel", "fq_codel noecn", "pie", "fq_pie", "sfb", "sfq perturb 10",
    "cake besteffort", "cake besteffort flows", "cake diffserv3", "cake diffserv4",
    "red limit 150000 avpkt 1000 burst 55 probability 0.02 min 30000 max 90000",
]
RATES = [2, 4, 6, 9, 14, 18, 24, 35, 50, 75, 150]
ROUND_TRIPS = [10, 15, 25, 35, 45, 65, 75, 110, 150, 250, 350]
PROBE = {"t": "probe"}


def draw(rng):
    up = rng.choice(RATES)
    down = rng.choice([up, up, 20, 45, 90])
    control = rng.choice(["cubic", "cubic", "reno", "bbr"])
    duration, warm = rng.choice([(30, 5), (60, 10)])
    flows = rng.choice([
        [{"cc": control, "dir": rng.choice(["up", "down"])}, PROBE],
        [{"cc": control, "n": rng.choice([2, 3, 4, 6, 10, 16]), "dir": rng.choice(["up", "down"])},
         PROBE],
        [{"cc": control, "n": rng.choice([1, 2, 4]), "dir": way} for way in ("up", "down")] + [PROBE],
        [{"cc": "cubic"}, {"cc": "reno"}, {"cc": "bbr"}, PROBE],
        [{"cc": control, "mark": mark} for mark in ("BE", "CS1", "EF")] + [{**PROBE, "mark": "EF"}],
        # From its start, and nothing else.
        [{"cc": control}],
    ])
    if len(flows) == 1:
        duration, warm = rng.choice([5, 10, 20]), 0
    if max(up, down) > 40:
        duration = min(duration, 30)
    return {"description": f"drawn: {len(flows)} kinds of flow, {up}/{down} Mbit up/down",
            "up": f"{up}mbit", "down": f"{down}mbit", "qdisc": rng.choice(DISCIPLINES),
            "base_rtt_ms": rng.choice(ROUND_TRIPS), "ecn": rng.choice([0, 0, 1]), "flows": flows,
            "duration_s": duration, "warm_s": warm, "seeds": [1, 2, 3]}


def main():
    if len(sys.argv) != 3 or not all(arg.isdigit() for arg in sys.argv[1:]):
        sys.exit(__doc__)
    seed, count = map(int, sys.argv[1:])
    rng = random.Random(seed)
    json.dump({f"R{seed}_{n:02}": draw(rng) for n in range(count)}, sys.stdout, indent=1)
    print()


main()
