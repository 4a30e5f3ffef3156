#!/usr/bin/env python3
"""Draws situations that nobody chose, for record-linux.py: one or many transfers, up, down or both,
of each congestion control, alone or mixed, through each discipline.

    conformance/draw-situations.py SEED COUNT [home|wide|given] > SITUATIONS.json
    conformance/record-linux.py KERNEL SITUATIONS.json OUT
    simnel conformance linux OUT

With `home`, what else there is on a line at home: short transfers that come and go, slow uplinks,
packets that are small, readers that are slow, a control each way. With `wide`, rates from 0.25 to 1000
Mbit/s, round trips from 2 to 600 ms, up to 200 flows, FIFOs of 5 to 5000 packets, losses, datagrams at
half to one and a half of the rate, small receive buffers, cake's ingress modes, tbf before others. With
`given`, the experiments of situations.json in turn, with other parameters: one flow, a test of eight
marked ones, uploads beside a download, hosts, a stream, ACK filters, loss, starts, small queues.
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


def draw(rng, _number):
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


UPLINKS = [0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 40]
DOWNLINKS = [3, 6, 10, 16, 25, 50, 100]
CONTROLS = ["cubic", "cubic", "reno", "bbr"]
HOME_DISCIPLINES = [
    "pfifo limit 50", "pfifo limit 200", "codel", "fq_codel", "fq_codel", "pie", "fq_pie",
    "sfq perturb 10", "cake besteffort", "cake besteffort", "cake diffserv4 ack-filter",
    "cake besteffort dual-srchost", "tbf codel", "tbf",
]


def transfers(rng, way, every):
    """Short ones, one after another or several at a time."""
    size = rng.choice([2_000, 10_000, 14_480, 20_000, 40_000, 100_000, 300_000])
    return {"cc": rng.choice(CONTROLS), "dir": way, "size": size, "every": every,
            "n": int(25 / every), "start": 1.5}


def draw_home(rng, _number):
    up, down = rng.choice(UPLINKS), rng.choice(DOWNLINKS)
    way, other = rng.sample(["up", "down"], 2)
    controls = [rng.choice(CONTROLS) for _ in range(2)]
    bulk = {"cc": controls[0], "n": rng.choice([1, 1, 2, 4]), "dir": way}
    back = {"cc": controls[1], "n": rng.choice([1, 1, 2, 4]), "dir": other}
    flows = rng.choice([
        [transfers(rng, way, rng.choice([0.5, 1, 2]))],
        [transfers(rng, way, rng.choice([0.5, 1])), bulk],
        [transfers(rng, way, rng.choice([0.5, 1])), back],
        [bulk, back],
        [bulk, back],
        [bulk],
        [{**bulk, "read": int(1e6 * rng.choice([0.3, 0.6, 0.9]) * (up if way == "up" else down))},
         back],
    ])
    mtu = rng.choice([1500, 1500, 1492, 1280, 576])
    kind, rates = rng.choice(HOME_DISCIPLINES), (f"{up:g}mbit", f"{down:g}mbit")
    lines = {"up": rates[0], "down": rates[1], "qdisc": kind}
    if kind.startswith("tbf"):
        lines = {"tc": [line for port, rate in zip(("r1", "r0"), rates)
                        for line in token_bucket(port, rate, kind[3:].strip())]}
    return {"description": f"drawn: a home, {up:g}/{down} Mbit up/down, {kind}", **lines,
            "base_rtt_ms": rng.choice([8, 14, 22, 32, 48, 80, 120]), "ecn": rng.choice([0, 0, 1]),
            "mtu": mtu, "flows": flows + [PROBE], "duration_s": 30, "warm_s": 1,
            "seeds": [1, 2, 3]}


WIDE_DISCIPLINES = [
    "fq_codel", "fq_codel limit 600", "codel", "codel target 20ms interval 200ms", "pie", "fq_pie",
    "sfq perturb 10", "cake besteffort", "cake diffserv4", "cake besteffort flows rtt 30ms",
    "cake besteffort ingress", "cake besteffort ingress ack-filter",
    "cake besteffort ack-filter-aggressive", "cake diffserv3 dual-dsthost ingress",
    "tbf fq_codel", "tbf sfq", "tbf pie",
]
# Mbit of the faster way in a run: what a recording of it costs.
MOST_MBIT = 1200


def draw_wide(rng, _number):
    def between(low, high):
        """Each power as likely as another, in two digits."""
        return float(f"{low * (high / low) ** rng.random():.2g}")

    def around(least, factor):
        return max(least, min(1000, between(least, least * factor)))

    slow = between(0.25, 400)
    rates = [slow, rng.choice([slow, around(slow, 40)])]
    up, down = rates if rng.random() < 0.8 else rates[::-1]
    rtt = int(between(2, 600))
    control = lambda: rng.choice(["cubic", "cubic", "reno"])
    way, other = rng.sample(["up", "down"], 2)
    rate = up if way == "up" else down
    bulk = {"cc": control(), "n": int(between(1, max(1.5, min(200, 4 * rate)))), "dir": way}
    back = {"cc": control(), "n": rng.choice([1, 1, 2, 8]), "dir": other}
    size = rng.choice([200, 600, 1200])
    datagrams = {"t": "cbr", "dir": way, "rate": int(rate * 1e6 * rng.choice([0.5, 0.9, 1.5])),
                 "size": size}
    pages = transfers(rng, way, rng.choice([0.25, 0.5, 1]))
    flows = rng.choice([[bulk], [bulk], [bulk, back], [bulk, back], [bulk, datagrams], [bulk, pages],
                        [back, pages], [{**bulk, "start": 3}, back]])
    duration = int(max(4, min(40, MOST_MBIT / max(up, down))))
    common = {"base_rtt_ms": rtt, "ecn": rng.choice([0, 1]), "flows": flows + [PROBE],
              "duration_s": duration, "warm_s": 1 if duration > 8 else 0, "seeds": [1, 2]}
    if rng.random() < 0.2:
        common["rmem"] = rng.choice([131_072, 262_144, 1 << 20])
    if rng.random() < 0.15:
        share = between(0.01, 10)
        lines = {"tc": [f"tc -n R qdisc add dev r1 root netem loss {share:g}% limit 100000"]}
        if way == "down":
            lines = {"tc": [lines["tc"][0].replace("r1", "r0")]}
        common["duration_s"] = 20
        common["warm_s"] = 1
        flows[0]["n"] = min(flows[0].get("n", 1), 4)
        # What is lost bounds the rate, where so much is.
        common["host"] = "rate 100mbit"
        return {"description": f"drawn: {share:g} % lost", **lines, **common}
    kind = rng.choice(WIDE_DISCIPLINES)
    if rng.random() < 0.4:
        kind = f"pfifo limit {int(between(5, 5000))}"
    lines = {"up": f"{up:g}mbit", "down": f"{down:g}mbit", "qdisc": kind}
    if kind.startswith("tbf"):
        lines = {"tc": [line for port, mbit in (("r1", up), ("r0", down))
                        for line in token_bucket(port, f"{mbit:g}mbit", kind[3:].strip())]}
    return {"description": f"drawn: {up:g}/{down:g} Mbit up/down, {kind}", **lines, **common}


def lossy(rng):
    share = rng.choice([0.02, 0.05, 0.2, 0.5, 1, 3])
    return {"tc": [f"tc -n R qdisc add dev r1 root netem loss {share}% limit 100000"],
            "host": "rate 100mbit", "duration_s": 20, "warm_s": 2,
            "flows": [{"cc": rng.choice(["cubic", "reno", "bbr"])}]}


def red(rate):
    return ("red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 "
            f"bandwidth {rate:g}mbit probability 0.1")


def classes(ways):
    return [{"dir": way, "mark": mark} for way in ways for mark in ("BE", "CS1", "CS5", "EF")]


def draw_given(rng, number):
    up = rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 15])
    down = rng.choice([up, up, 8, 12, 16, 25])
    control = rng.choice(["cubic", "reno", "bbr"])
    probes = [{"t": "probe", "mark": mark} for mark in ("BE", "CS1", "EF")]
    ecn = rng.choice([0, 1])
    says = " ecn" if ecn else ""
    plain = ["pfifo limit 40", "pfifo limit 120", "pfifo limit 500", f"codel{says}", "fq_codel",
             f"pie{says}", f"fq_pie{says}", "sfb limit 1000", "sfq limit 1000 perturb 10",
             red(up) + says]
    fair = ["fq_codel", f"fq_pie{says}", "sfq perturb 10", "cake besteffort", "cake diffserv3",
            "cake diffserv4", "cake diffserv8", "cake precedence"]
    kind = rng.choice(plain + fair[3:])
    small = [f"pfifo limit {rng.choice([3, 6, 10, 16])}", f"fq_codel limit {rng.choice([10, 30])}",
             f"pie limit {rng.choice([20, 50])}", f"fq_pie limit {rng.choice([20, 50])}",
             f"sfq limit {rng.choice([10, 30])}", f"codel limit {rng.choice([10, 30])}",
             f"cake besteffort memlimit {rng.choice([32, 64])}k",
             f"bfifo limit {rng.choice([9, 20])}k"]
    inbound = ["besteffort ingress", "diffserv4 ingress", "besteffort autorate-ingress",
               "diffserv3 ingress dual-dsthost ack-filter", "besteffort ingress wash"]
    hosts = [{"srcip": f"10.0.1.{a}", "dstip": f"10.0.2.{b}", "n": n}
             for a, b, n in ((1, 1, 1), (1, 2, rng.choice([1, 3])), (2, 3, rng.choice([1, 2, 6])))]
    experiments = [
        lambda: {"qdisc": kind, "flows": [{"cc": control}] + probes[:1]},
        lambda: {"qdisc": rng.choice(fair + plain[3:6]), "flows": classes(["up", "down"]) + probes},
        lambda: {"qdisc": kind, "flows": [{"cc": control, "n": rng.choice([2, 4, 8])}] + probes[:1]},
        lambda: {"qdisc": kind, "ecn": ecn,
                 "flows": [{"n": rng.choice([10, 25, 40])}, {"dir": "down"}] + probes[:1]},
        lambda: {"qdisc": rng.choice(["cake besteffort " + mode for mode in (
                     "triple-isolate", "dual-srchost", "dual-dsthost", "hosts", "srchost", "flows")]),
                 "flows": hosts + probes[:1]},
        lambda: {"qdisc": rng.choice(fair), "flows": [
                    {"t": "cbr", "mark": rng.choice(["EF", "CS5", "BE"]), "size": 1250,
                     "rate": int(up * rng.choice([1e5, 2e5, 6e5, 12e5]))},
                    {"n": rng.choice([4, 12, 32])}, probes[0], probes[2]]},
        lambda: {"qdisc": "cake besteffort " + rng.choice(["ack-filter", "ack-filter-aggressive"]),
                 "up": "1mbit", "down": f"{rng.choice([15, 25])}mbit",
                 "flows": [{"n": rng.choice([0, 1, 4])}, {"dir": "down", "n": rng.choice([1, 4])}]
                 + probes[:1]},
        lambda: lossy(rng),
        lambda: {"qdisc": "pfifo limit " + rng.choice(["25", "60", "250", "1000"]), "warm_s": 0,
                 "duration_s": 8, "up": f"{rng.choice([10, 30, 60])}mbit",
                 "flows": [{"cc": control}]},
        lambda: {"qdisc": rng.choice(small), "flows": [{"cc": control, "n": rng.choice([1, 3])},
                                                       {"dir": "down"}] + probes[:1]},
        # Without an end to what comes in, a rate that follows it has none either.
        lambda: {"qdisc": "cake " + rng.choice(inbound), "host": "rate 40mbit",
                 "flows": [{"cc": control, "dir": "down", "n": rng.choice([1, 4])}, {}] + probes[:1]},
        lambda: {"qdisc": kind, "rmem": rng.choice([65_536, 131_072, 400_000]),
                 "flows": [{"cc": control}, {"cc": control, "dir": "down"}] + probes[:1]},
    ]
    return {"up": f"{up}mbit", "down": f"{down}mbit", "ecn": ecn,
            "base_rtt_ms": rng.choice([12, 24, 36, 60, 80, 130, 180]), "duration_s": 40,
            "warm_s": 10, "seeds": [1, 2], **experiments[number % len(experiments)]()}


def token_bucket(port, rate, leaf):
    add = f"tc -n R qdisc add dev {port}"
    yield f"{add} root handle 1: tbf rate {rate} burst 5k latency 300ms"
    if leaf:
        yield f"{add} parent 1: handle 10: {leaf}"


# Letter of the names, and what draws the situation of a number, by the words behind SEED and COUNT.
KINDS = {(): ("R", draw), ("home",): ("L", draw_home), ("wide",): ("W", draw_wide), ("given",): ("V", draw_given)}


def main():
    words = sys.argv[1:]
    if len(words) < 2 or not all(word.isdigit() for word in words[:2]) or tuple(words[2:]) not in KINDS:
        sys.exit(__doc__)
    seed, count, *kind = words
    rng = random.Random(int(seed))
    letter, drawn = KINDS[tuple(kind)]
    json.dump({f"{letter}{seed}_{n:02}": drawn(rng, n) for n in range(int(count))}, sys.stdout, indent=1)
    print()


main()
