#!/usr/bin/env python3
"""Draws settings and traffic, asks Linux's code and ours, and keeps what differs as recordings.

Used by conformance/fuzz-linux.sh, which makes the oracle (Linux's disciplines as a program). The
settings are written for Linux here, as its `tc` does, and for ours as words: what one side means by
a word and its default is part of what is compared. `--check DIR` asks the oracle about recordings
that are there, instead.
"""
import argparse
import collections
import gzip
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import time

HANDLE = 0x80010000
SURROUNDINGS = ("seed", "key0", "key1", "t0", "hz", "wheel", "link")
FLAGS = ("ecn", "noecn", "harddrop", "nodrop", "bytemode", "headdrop", "dq_rate_estimator")
# Attributes that carry one number of 32 bits.
NUMBERS = {
    "codel": {"target": 1, "limit": 2, "interval": 3, "ecn": 4, "ce_threshold": 5},
    "fq_codel": {"target": 1, "limit": 2, "interval": 3, "ecn": 4, "flows": 5, "quantum": 6,
                 "ce_threshold": 7, "drop_batch": 8, "memory_limit": 9},
    "pie": {"target": 1, "limit": 2, "tupdate": 3, "alpha": 4, "beta": 5, "ecn": 6, "bytemode": 7,
            "dq_rate_estimator": 8},
    "fq_pie": {"limit": 1, "flows": 2, "target": 3, "tupdate": 4, "alpha": 5, "beta": 6,
               "quantum": 7, "memory_limit": 8, "ecn_prob": 9, "ecn": 10, "bytemode": 11,
               "dq_rate_estimator": 12},
    "cake": {"diffserv": 3, "atm": 4, "flow": 5, "overhead": 6, "rtt": 7, "target": 8,
             "memlimit": 10, "wash": 13, "mpu": 14, "ingress": 15, "ack": 16},
}
TIMES = ("target", "interval", "ce_threshold", "tupdate", "rtt")
SFB = ("rehash", "db", "max", "target", "increment", "decrement", "limit", "penalty_rate",
       "penalty_burst")
SFB_DEFAULTS = dict(rehash=600000, db=60000, max=25, target=20, increment=33, decrement=3,
                    limit=0, penalty_rate=10, penalty_burst=20)


def attribute(number, body):
    return struct.pack("=HH", 4 + len(body), number) + body + bytes(-len(body) % 4)


def u32(value):
    return struct.pack("=I", int(value) & 0xFFFFFFFF)


def ticks(rate, size):
    """A burst's time at a rate in bytes a second: tc's whole microseconds in ticks of 64 ns."""
    return int(size * 1000000 // rate * 15.625)


def rate_spec(rate, overhead=0, mpu=0):
    return struct.pack("=BBHhHI", 0, 1, overhead & 0xFFFF, -1, mpu, min(rate, 0xFFFFFFFF))


def tbf_options(get):
    rate, burst = int(get["rate"]) // 8, int(get["burst"])
    overhead, mpu = int(get.get("overhead", 0)), int(get.get("mpu", 0))
    peak, mtu = int(get.get("peakrate", 0)) // 8, int(get.get("mtu", 0))
    latency = int(get.get("latency", 0))
    limit = int(get.get("limit", 0)) or int(rate * latency / 1e6 + burst)
    if latency and peak:
        limit = min(limit, int(peak * latency / 1e6 + mtu))
    parms = rate_spec(rate, overhead, mpu)
    parms += rate_spec(peak, overhead, mpu) if peak else rate_spec(0)
    parms += u32(limit) + u32(ticks(rate, burst)) + u32(ticks(peak, mtu) if peak else 0)
    out = attribute(1, parms) + attribute(6, u32(burst))
    return out + attribute(7, u32(mtu)) if peak else out


def red_options(get):
    low, high, avpkt = int(get["min"]), int(get["max"]), int(get["avpkt"])
    burst = int(get.get("burst", (2 * low + high) // (3 * avpkt)))
    rate, chance = int(get.get("bandwidth", 10000000)) // 8, float(get.get("probability", 0.02))
    excess = burst + 1 - low / avpkt
    wlog = next(w for w in range(1, 32) if excess <= (1 - (1 - 0.5**w) ** burst) * 2**w)
    plog = next((p for p in range(32) if chance / (high - low) * 2**p > 1), 31)
    fall = -math.log(1 - 0.5**wlog) / ticks(rate, avpkt)
    clog = next(c for c in range(32) if 31 / fall / 2**c < 512)
    table = [min(int((cell << clog) * fall), 31) for cell in range(255)] + [31]
    flags = sum(bit for key, bit in (("ecn", 1), ("harddrop", 2), ("nodrop", 8))
                if int(get.get(key, 0)))
    parms = struct.pack("=IIIBBBB", int(get["limit"]), low, high, wlog, plog, clog, flags & 3)
    out = attribute(1, parms) + attribute(2, bytes(table)) + attribute(3, u32(chance * 2**32))
    return out + attribute(4, struct.pack("=II", flags, 8)) if flags & 8 else out


def options(kind, get):
    """The body of TCA_OPTIONS for arguments as recordings name them."""
    if kind == "cake":
        rate = int(get.get("rate", 0)) // 8
        out = attribute(2, struct.pack("=Q", rate)) if rate else b""
        if "raw" in get:
            out += attribute(12, u32(0))
        return out + b"".join(attribute(number, u32(get[key])) for key, number in
                              NUMBERS[kind].items() if key in get)
    if kind in NUMBERS:
        return b"".join(attribute(number, u32(get[key])) for key, number in NUMBERS[kind].items()
                        if key in get)
    if kind == "tbf":
        return tbf_options(get)
    if kind == "red":
        return red_options(get)
    if kind == "sfb":
        values = {**SFB_DEFAULTS, **{key: int(get[key]) for key in SFB if key in get}}
        return attribute(1, b"".join(u32(values[key]) for key in SFB))
    if kind == "sfq":
        first = [int(get.get(key, 0)) for key in ("quantum", "perturb", "limit", "divisor",
                                                  "flows")]
        rest = [int(get.get(key, 0)) for key in ("depth", "headdrop")]
        return struct.pack("=7I", *first, *rest) + bytes(44) if any(first + rest) else b""
    if kind in ("pfifo", "bfifo", "pfifo_head_drop"):
        return u32(get["limit"]) if "limit" in get else b""
    if kind == "htb":
        glob = struct.pack("=5I", 3, int(get.get("r2q", 10)), int(get.get("default", "0"), 16),
                           0, 0)
        return attribute(2, glob)
    return b""


def pairs(parts):
    return dict(part.split("=", 1) if "=" in part else (part, "1") for part in parts)


def minor(name):
    return HANDLE | int(name.split(":")[1], 16)


def configuration(case):
    """What the oracle reads before `input`."""
    args = [arg.split("=", 1) for arg in case["args"]]
    get = dict(args)
    lines = [f"{key} {get[key]}" for key in SURROUNDINGS if key in get]

    def qdisc(parent, handle, kind, values):
        body = options(kind, values)
        lines.append(f"qdisc {parent:x} {handle:x} {kind} {body.hex() or '-'}")

    kind = case["qdisc"]
    qdisc(0, HANDLE, kind, get)
    for key, value in args:
        if key != "class":
            continue
        name, *parts = value.split(";")
        said = pairs(parts)
        if kind == "drr":
            parent, body = 0, attribute(1, u32(said.get("quantum", 1514)))
        else:
            above = said.get("parent", "root")
            parent = 0xFFFFFFFF if above == "root" else minor(above)
            rate = int(said["rate"]) // 8
            ceil = int(said.get("ceil", said["rate"])) // 8
            hz = 1000000000
            burst = int(said.get("burst", rate // hz + 1600))
            cburst = int(said.get("cburst", ceil // hz + 1600))
            numbers = [ticks(rate, burst), ticks(ceil, cburst), int(said.get("quantum", 0)), 0,
                       int(said.get("prio", 0))]
            body = attribute(1, rate_spec(rate) + rate_spec(ceil) + b"".join(map(u32, numbers)))
        lines.append(f"class {parent:x} {minor(name):x} {body.hex()}")
    for n, (_, value) in enumerate((a for a in args if a[0] == "leaf"), 1):
        name, leaf, *parts = value.split(";")
        qdisc(minor(name), 0x100000 * n, leaf, pairs(parts))
    return "\n".join(lines) + "\ninput\n"


def ask(oracle, case, arrivals):
    """Linux's answer: lines, or None and why not."""
    result = subprocess.run([oracle], input=configuration(case) + arrivals, text=True,
                            capture_output=True, check=False)
    return (result.stdout, "") if result.returncode == 0 else (None, result.stderr.strip())


# What to draw: settings.

def some(rng, choices, share=0.5):
    """A part of the settings, each drawn from its values."""
    return {key: rng.choice(values) for key, values in choices.items() if rng.random() < share}


CHILDREN = {
    "codel": dict(limit=[1, 5, 30, 200, 1000], target=[1000, 5000, 20000],
                  interval=[10000, 100000], ecn=[1], ce_threshold=[500, 1000, 10000]),
    "fq_codel": dict(limit=[5, 50, 200, 1000], flows=[1, 2, 8, 64, 1024], target=[2000, 5000],
                     interval=[20000, 100000], quantum=[300, 1514, 5000], ecn=[0, 1],
                     ce_threshold=[1000], drop_batch=[1, 4, 64], memory_limit=[50000, 200000]),
    # Not alpha 0: tc leaves it out, so that the default counts.
    "pie": dict(limit=[10, 50, 1000], target=[5000, 15000, 30000], tupdate=[5000, 15000, 30000],
                alpha=[1, 2, 8], beta=[1, 20, 32], ecn=[1], bytemode=[1],
                dq_rate_estimator=[1]),
    "fq_pie": dict(limit=[10, 100, 2000], flows=[1, 8, 1024], target=[5000, 15000],
                   tupdate=[5000, 15000], alpha=[1, 2], beta=[10, 20], quantum=[300, 1514],
                   ecn_prob=[1, 10, 50], ecn=[1], bytemode=[1], dq_rate_estimator=[1]),
    "sfq": dict(limit=[5, 40, 127], depth=[3, 10, 127], flows=[4, 16, 127], divisor=[64, 1024],
                quantum=[1514, 3000], headdrop=[1], perturb=[1, 2]),
    "pfifo": dict(limit=[1, 20, 100]),
    "bfifo": dict(limit=[3000, 60000]),
    "pfifo_head_drop": dict(limit=[1, 20, 100]),
}
KINDS = [*CHILDREN, "cake", "sfb", "red", "tbf", "htb", "drr"]
# In Linux all draw from one stream, ours each from one of its own: one of them to a case.
DICE = ("pie", "sfq")
LEAVES = ("codel", "fq_codel", "pie", "sfq", "pfifo", "bfifo")
CAKE_MODES = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
CAKE_FLOWS = ("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost",
              "triple-isolate")


def words(kind, get):
    out = [kind]
    for key, value in get.items():
        if key == "ecn" and kind == "fq_codel" and not value:
            out.append("noecn")
        elif key in FLAGS:
            out += [key] if value else []
        elif kind == "sfb" and key in ("increment", "decrement"):
            out += [key, f"{(value + 0.3) / 65535:.8f}"]
        elif key in TIMES and kind != "sfb":
            out += [key, f"{value}us"]
        elif kind in ("tbf", "red") and key in ("rate", "peakrate", "bandwidth"):
            out += [key, f"{value}bit"]
        elif key == "latency":
            out += [key, f"{value}us"]
        else:
            out += [key, str(value)]
    return " ".join(out)


def draw_cake(rng):
    get, text = {}, ["cake"]
    rate = rng.choice([0, 128000, 600000, 3000000, 10000000, 50000000])
    get["rate"] = rate
    text.append(f"bandwidth {rate}bit" if rate else "unlimited")
    get["diffserv"] = rng.randrange(5)
    get["flow"] = rng.randrange(8)
    text += [CAKE_MODES[get["diffserv"]], CAKE_FLOWS[get["flow"]]]
    for key, words_of in (("ingress", "ingress"), ("wash", "wash")):
        if rng.random() < 0.3:
            get[key] = 1
            text.append(words_of)
    if rng.random() < 0.4:
        get["ack"] = rng.choice([1, 2])
        text.append(("ack-filter", "ack-filter-aggressive")[get["ack"] - 1])
    if rng.random() < 0.4:
        get["rtt"] = rng.choice([1000, 10000, 30000, 300000])
        get["target"] = max(get["rtt"] // 20, 1)
        text.append(f"rtt {get['rtt']}us")
    if rng.random() < 0.4:
        get["memlimit"] = rng.choice([32768, 100000, 1000000])
        text.append(f"memlimit {get['memlimit']}")
    if "ack" in get and get.get("memlimit", 1 << 32) > 100000:
        # Ours looks at 256 packets of a queue: cake-ackfilter/beyond-bound in the ledger.
        text = [word for word in text if not word.startswith("memlimit")] + ["memlimit 100000"]
        get["memlimit"] = 100000
    if rng.random() < 0.4:
        get["overhead"], get["atm"] = rng.choice([-20, 0, 18, 44]), rng.randrange(3)
        text += [f"overhead {get['overhead']}", ("noatm", "atm", "ptm")[get["atm"]]]
        get["overhead"] &= 0xFFFFFFFF
        if rng.random() < 0.5:
            get["mpu"] = rng.choice([64, 84, 200])
            text.append(f"mpu {get['mpu']}")
    return " ".join(text), [f"{key}={value}" for key, value in get.items()]


def draw_classes(rng, kind):
    names, args = [f"8001:{10 * (n + 1)}" for n in range(rng.randint(1, 4))], []
    if kind == "htb":
        args.append(f"default=0x{rng.choice(names).split(':')[1]}")
        root = rng.choice([1000000, 5000000, 10000000])
        if len(names) > 1:
            args.append(f"class=8001:1;parent=root;rate={root};ceil={root};burst=15000;"
                        "cburst=15000")
    for name in names:
        if kind == "drr":
            args.append(f"class={name};quantum={rng.choice([300, 1514, 3000, 9000])}")
            continue
        rate = rng.choice([200000, 1000000, 2000000])
        parent = "1:1" if len(names) > 1 else "root"
        text = f"class={name};parent={parent};rate={rate};ceil={rng.choice([rate, root])}"
        text += f";burst={rng.choice([1600, 6000])};cburst={rng.choice([1600, 8000])}"
        args.append(text + f";prio={rng.randrange(3)};quantum={rng.choice([1514, 3000])}")
    leaves = list(LEAVES)
    for name in names:
        if rng.random() < 0.7:
            leaf = rng.choice(leaves)
            if leaf in DICE:
                leaves = [leaf for leaf in leaves if leaf not in DICE]
            said = some(rng, CHILDREN[leaf])
            said = {key: value for key, value in said.items() if key not in FLAGS or value}
            parts = [key if key in FLAGS else f"{key}={value}" for key, value in said.items()]
            # Times are microseconds on both sides.
            args.append(";".join([f"leaf={name}", leaf, *parts]))
    return kind, args, names


def draw(rng, kind):
    """Words, arguments, and names of classes."""
    if kind == "cake":
        return (*draw_cake(rng), [])
    if kind in ("drr", "htb"):
        return draw_classes(rng, kind)
    if kind == "sfb":
        get = {key: rng.choice(values) for key, values in dict(
            rehash=[300, 700, 5000], db=[0, 100, 300], limit=[30, 200, 1000], max=[10, 25],
            target=[5, 9], increment=[66, 655, 6553], decrement=[11, 66, 600],
            penalty_rate=[0, 10, 100], penalty_burst=[1, 20]).items()}
    elif kind == "red":
        low = rng.choice([10000, 30000])
        get = dict(limit=rng.choice([60000, 400000]), min=low, max=3 * low, avpkt=1000,
                   bandwidth=10000000, probability=rng.choice([0.02, 0.1, 0.5]))
        get.update(some(rng, dict(ecn=[1])))
        if get.get("ecn"):
            get.update(some(rng, dict(harddrop=[1], nodrop=[1])))
    elif kind == "tbf":
        get = dict(rate=rng.choice([1000000, 5000000, 20000000]),
                   burst=rng.choice([1600, 5000, 20000]), limit=rng.choice([5000, 60000]))
        if rng.random() < 0.3:
            get.update(peakrate=2 * get["rate"], mtu=rng.choice([1514, 3000]))
    else:
        get = some(rng, CHILDREN[kind])
    return words(kind, get), [f"{key}={value}" for key, value in get.items()], []


# Traffic.

def draw_arrivals(rng, count, start, names):
    hosts = rng.choice([1, 1, 3, 20])
    flows = []
    for n in range(rng.choice([1, 2, 5, 30, 200])):
        tcp, v6 = rng.random() < 0.4, rng.random() < 0.15
        host = rng.randrange(hosts) + 1
        source = f"fd00::{host:x}" if v6 else f"10.0.0.{host}"
        target = f"fd01::{rng.randrange(3) + 1:x}" if v6 else f"10.1.0.{rng.randrange(3) + 1}"
        flows.append(dict(
            text=f"{source},{target},{1024 + n},{rng.choice([53, 80, 443])},{6 if tcp else 17}",
            tcp=tcp, v6=v6, dscp=rng.choice([0, 0, 0, 8, 10, 34, 46, 48, rng.randrange(64)]),
            ecn=rng.choice([0, 0, 1, 2, 3]) if rng.random() < 0.6 else 2, stamps=rng.random() < 0.7,
            acks=tcp and rng.random() < 0.6, size=rng.choice([100, 590, 1514, 1514]),
            name=rng.choice(names) if names else "", ack=1000, stamp=1))
    gap, now, lines = rng.choice([20000, 200000, 600000, 1500000]), start + rng.randrange(10**6), []
    while len(lines) < count:
        now += int(rng.expovariate(1 / gap))
        if rng.random() < 0.002:
            now += rng.choice([10**8, 10**9])
        flow = rng.choice(flows)
        for _ in range(rng.choice([1, 1, 1, 8]) if rng.random() < 0.2 else 1):
            lines.append(arrival(rng, flow, now, len(lines)))
    return lines[:count], now + 10**9


def arrival(rng, flow, now, number):
    network = 14 + (40 if flow["v6"] else 20)
    head = network + (20 + (12 if flow["stamps"] else 0) if flow["tcp"] else 8)
    columns = [""] * 7
    length = flow["size"]
    if flow["tcp"]:
        sack = ""
        if flow["acks"]:
            length = head
            flow["ack"] += rng.choice([0, 1448, 1448, 2896])
            if rng.random() < 0.2:
                blocks = rng.randint(1, 3)
                left = flow["ack"] + 1448
                edges = [left + 4000 * n for n in range(blocks)]
                sack = ";".join(f"{edge}-{edge + 1448}" for edge in edges)
                length += 4 + 8 * blocks
        else:
            length = max(length, head + 1)
        flow["stamp"] += rng.choice([0, 0, 1])
        stamps = [str(flow["stamp"]), "1"] if flow["stamps"] else ["", ""]
        columns = ["10" if rng.random() < 0.97 else "18", "1", str(flow["ack"]), *stamps, sack, ""]
    else:
        length = max(length, head)
    columns[6] = flow["name"]
    line = f"{now},enq+,{number},{length},{flow['text']},{flow['dscp']},{flow['ecn']},"
    return (line + ",".join(columns)).rstrip(",")


def draw_case(seed, kinds):
    rng = random.Random(seed)
    kind = rng.choice(kinds)
    text, args, names = draw(rng, kind)
    shapes = kind in ("tbf", "htb") or (kind == "cake" and "bandwidth" in text)
    # CoDel's clock has 32 bits of 1024 ns, and Linux's takes the mark "never dropped", 0, for a
    # time: a fresh flow is another in the second half of each 73 minutes (ledger.toml).
    start = rng.choice([10**11, 10**11, 97 * 10**12])
    args += [f"seed={rng.getrandbits(63) | 1}", f"key0={rng.getrandbits(63)}",
             f"key1={rng.getrandbits(63)}", f"t0={start}"]
    if not shapes:
        args.append(f"link={rng.choice([1000000, 8000000, 50000000])}")
    lines, end = draw_arrivals(rng, rng.choice([300, 1500, 4000]), start, names)
    return dict(name=f"seed-{seed}", group=kind, qdisc=kind, tc=text, args=args), lines, end


# Comparison: recordings in a directory, replayed by `simnel conformance golden`.

def arrivals_text(lines, end):
    numbered = []
    for number, line in enumerate(lines):
        columns = line.split(",")
        columns[2] = str(number)
        numbered.append(",".join(columns))
    return "\n".join([*numbered, f"{end},run"]) + "\n"


def record(directory, case, lines, end, answer):
    group = directory / case["group"]
    group.mkdir(parents=True, exist_ok=True)
    path = group / case["name"]
    arrivals = arrivals_text(lines, end)
    for suffix, text in ((".csv.gz", arrivals), (".out.gz", answer)):
        (path.parent / (path.name + suffix)).write_bytes(gzip.compress(text.encode(), mtime=0))
    whole = {**case, "packets": len(lines)}
    (path.parent / (path.name + ".json")).write_text(json.dumps(whole, indent=1) + "\n")


def replay(simnel, directory, ledger):
    """Outcome of each recording by its name."""
    command = [simnel, "conformance", "golden", str(directory), "--json", "--ledger", ledger]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    if not outcomes:
        sys.exit(f"fuzz-linux: simnel gave no outcome: {result.stderr.strip()}")
    return {outcome["name"]: outcome for outcome in outcomes}


def clear(directory):
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def shrink(options_, case, lines, end, scratch, tries=60):
    """Fewer packets that still differ: cut behind the difference, then leave pieces out."""
    def differs(kept):
        nonlocal tries
        tries -= 1
        answer, _ = ask(options_.oracle, case, arrivals_text(kept, end))
        if answer is None:
            return False
        clear(scratch)
        record(scratch, case, kept, end, answer)
        return any(not outcome["equal"] and outcome["ledger"] is None
                   for outcome in replay(options_.simnel, scratch, options_.ledger).values())

    piece = len(lines) // 2
    while piece and tries > 0:
        at = len(lines) - piece
        while at >= 0 and tries > 0:
            kept = lines[:at] + lines[at + piece:]
            if kept and differs(kept):
                lines = kept
            at -= piece
        piece //= 2
    return lines


def check(options_):
    equal = total = 0
    for path in sorted(pathlib.Path(options_.check).rglob("*.json")):
        case = json.loads(path.read_text())
        csv, out = (gzip.open(path.with_suffix(end), "rt").read() for end in (".csv.gz", ".out.gz"))
        answer, why = ask(options_.oracle, case, csv)

        def events(text):
            return [line for line in (text or "").splitlines()
                    if not line.startswith("#") and line.split()[1] not in ("state", "timer")]
        total += 1
        recorded, asked = events(out), events(answer)
        if recorded == asked:
            equal += 1
            continue
        same = next((n for n, (a, b) in enumerate(zip(recorded, asked)) if a != b),
                    min(len(recorded), len(asked)))
        print(f"{case['group']}/{case['name']}: differs after {same} of {len(recorded)} lines: "
              f"{why or (recorded[same:same + 1], asked[same:same + 1])}")
    print(f"{total} recordings: the oracle's answer equals {equal}")
    return 0 if equal == total else 1


def fuzz(options_):
    directory = pathlib.Path(options_.directory)
    counts_file, found = directory / "fuzz.json", directory / "found"
    counts = {"packets": 0, "cases": 0, "refused": 0, "differences": [], "coverage": {}}
    if counts_file.exists():
        counts = json.loads(counts_file.read_text())
    coverage = collections.Counter(counts["coverage"])
    kinds = [options_.only] if options_.only else KINDS
    batch, scratch = directory / "batch", directory / "scratch"
    seed, until, new = options_.seed, time.monotonic() + options_.seconds, 0
    first, packets = seed, 0
    last = first + options_.cases if options_.cases else None

    def goes_on():
        return seed < last if last else time.monotonic() < until

    while goes_on():
        clear(batch)
        cases = {}
        for _ in range(min(options_.batch, last - seed) if last else options_.batch):
            case, lines, end = draw_case(seed, kinds)
            seed += 1
            answer, why = ask(options_.oracle, case, arrivals_text(lines, end))
            if answer is None:
                counts["refused"] += 1
                if "refuses" not in why:
                    print(f"seed {seed - 1}: {why}")
                continue
            record(batch, case, lines, end, answer)
            cases[f"{case['group']}/{case['name']}"] = (case, lines, end)
        if not cases:
            continue
        for name, outcome in replay(options_.simnel, batch, options_.ledger).items():
            case, lines, end = cases[name]
            packets += len(lines)
            keys = [arg.replace(";", "=").split("=") for arg in case["args"]]
            coverage.update({f"{case['qdisc']} {key[0]}" for key in keys})
            if outcome["equal"] or outcome["ledger"]:
                continue
            new += 1
            if options_.shrink:
                lines = shrink(options_, case, lines, end, scratch)
            answer, _ = ask(options_.oracle, case, arrivals_text(lines, end))
            record(found, case, lines, end, answer)
            counts["differences"].append(case["name"])
            print(f"DIFFERS {name}: {len(lines)} packets: {case['tc']}\n  "
                  f"{' '.join(case['args'])}\n{outcome['first_difference']}", flush=True)
    counts.update(packets=counts["packets"] + packets, cases=counts["cases"] + seed - first,
                  coverage=dict(sorted(coverage.items())))
    part = counts_file.with_suffix(".part")
    part.write_text(json.dumps(counts, indent=1) + "\n")
    part.rename(counts_file)
    clear(batch)
    clear(scratch)
    print(f"seeds {first} to {seed - 1}: {packets} packets, {new} differences; in all "
          f"{counts['packets']} packets, {len(coverage)} settings covered "
          f"(least often: {', '.join(f'{k} {n}' for k, n in coverage.most_common()[:-6:-1])})")
    return 1 if new else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--simnel")
    parser.add_argument("--ledger")
    parser.add_argument("--directory")
    parser.add_argument("--check", help="recordings to ask the oracle about")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, help="so many cases, however long they take")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--only")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    given = parser.parse_args()
    for name in ("batch", "scratch"):
        if given.directory:
            (pathlib.Path(given.directory) / name).mkdir(parents=True, exist_ok=True)
    sys.exit(check(given) if given.check else fuzz(given))


if __name__ == "__main__":
    main()
