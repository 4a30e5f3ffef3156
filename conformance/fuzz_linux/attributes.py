"""Settings and surroundings of a case as Linux takes them: attributes of rtnetlink, and the oracle's
configuration (benches/linux/oracle-main.c).

Written for Linux here as its `tc` does, and for ours as words (draw.py): what one side means by a
word and its default is part of what is compared.
"""
import math
import struct

HANDLE = 0x80010000
SURROUNDINGS = ("seed", "key0", "key1", "t0", "hz", "wheel", "link")
FLAGS = ("ecn", "noecn", "harddrop", "adaptive", "nodrop", "bytemode", "headdrop", "dq_rate_estimator")
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
    "dualpi2": {"limit": 1, "memory_limit": 2, "target": 3, "tupdate": 4, "alpha": 5, "beta": 6,
                "min_qlen_step": 9},
    "cake": {"diffserv": 3, "atm": 4, "flow": 5, "overhead": 6, "rtt": 7, "target": 8,
             "autorate": 9, "memlimit": 10, "wash": 13, "mpu": 14, "ingress": 15, "ack": 16,
             "gso": 17, "fwmark": 18},
}
# And in dualpi2 one of 8 bits.
BYTES = {"coupling": 10, "overload": 11, "early": 12, "protection": 13, "mask": 14, "gso": 15}
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


def red_numbers(get):
    """RED's thresholds, its weight, and the probability of a byte, both as shifts."""
    low, high, avpkt = int(get["min"]), int(get["max"]), int(get["avpkt"])
    burst = int(get.get("burst", (2 * low + high) // (3 * avpkt)))
    chance, excess = float(get.get("probability", 0.02)), burst + 1 - low / avpkt
    wlog = next(w for w in range(1, 32) if excess <= (1 - (1 - 0.5**w) ** burst) * 2**w)
    plog = next((p for p in range(32) if chance / (high - low) * 2**p > 1), 31)
    return low, high, wlog, plog


def red_flags(get):
    return sum(bit for key, bit in (("ecn", 1), ("harddrop", 2), ("adaptive", 4), ("nodrop", 8))
               if int(get.get(key, 0)))


def red_options(get):
    low, high, wlog, plog = red_numbers(get)
    rate, chance = int(get.get("bandwidth", 10000000)) // 8, float(get.get("probability", 0.02))
    fall = -math.log(1 - 0.5**wlog) / ticks(rate, int(get["avpkt"]))
    clog = next(c for c in range(32) if 31 / fall / 2**c < 512)
    table = [min(int((cell << clog) * fall), 31) for cell in range(255)] + [31]
    flags = red_flags(get)
    # The timer of `adaptive` is started by the old place of the flags only.
    old = flags if flags & 4 else 0
    parms = struct.pack("=IIIBBBB", int(get["limit"]), low, high, wlog, plog, clog, old)
    out = attribute(1, parms) + attribute(2, bytes(table)) + attribute(3, u32(chance * 2**32))
    return out if old else out + attribute(4, struct.pack("=II", flags, 15))


def sfq_options(get):
    first = [int(get.get(key, 0)) for key in ("quantum", "perturb", "limit", "divisor", "flows")]
    rest = [int(get.get(key, 0)) for key in ("depth", "headdrop", "redflowlimit")]
    if not any(first + rest):
        return b""
    red = bytes(16)
    if "redflowlimit" in get:
        low, high, wlog, plog = red_numbers(get)
        red = struct.pack("=IIBBBBI", low, high, wlog, plog, 0, red_flags(get),
                          int(float(get["probability"]) * 2**32))
    return struct.pack("=8I", *first, *rest) + red + bytes(24)


def dualpi2_options(get):
    """Those that are not numbers of 32 bits whatever else is said."""
    out = b""
    if "step" in get:
        out += attribute(7 if int(get.get("step_in_packets", 0)) else 8, u32(get["step"]))
    return out + b"".join(attribute(number, bytes([int(get[key])])) for key, number in
                          BYTES.items() if key in get)


def options(kind, get):
    """The body of TCA_OPTIONS for arguments as recordings name them."""
    if kind == "cake":
        out = b""
        if "rate" in get:
            out += attribute(2, struct.pack("=Q", int(get["rate"]) // 8))
        if "raw" in get:
            out += attribute(12, u32(0))
        return out + b"".join(attribute(number, u32(get[key])) for key, number in
                              NUMBERS[kind].items() if key in get)
    if kind in NUMBERS:
        out = b"".join(attribute(number, u32(get[key])) for key, number in NUMBERS[kind].items()
                       if key in get)
        return out + dualpi2_options(get) if kind == "dualpi2" else out
    if kind == "tbf":
        return tbf_options(get)
    if kind == "red":
        return red_options(get)
    if kind == "sfb":
        values = {**SFB_DEFAULTS, **{key: int(get[key]) for key in SFB if key in get}}
        return attribute(1, b"".join(u32(values[key]) for key in SFB))
    if kind == "sfq":
        return sfq_options(get)
    if kind in ("pfifo", "bfifo", "pfifo_head_drop"):
        return u32(get["limit"]) if "limit" in get else b""
    if kind == "htb":
        glob = struct.pack("=5I", 3, int(get.get("r2q", 10)), int(get.get("default", "0"), 16),
                           0, 0)
        length = attribute(5, u32(get["direct_qlen"])) if "direct_qlen" in get else b""
        return attribute(2, glob) + length
    return b""


def pairs(parts):
    return dict(part.split("=", 1) if "=" in part else (part, "1") for part in parts)


def minor(name):
    return HANDLE | int(name.split(":")[1], 16)


def class_options(kind, value):
    """Name, parent and TCA_OPTIONS' body of a class, as `class=` of recordings says it."""
    name, *parts = value.split(";")
    said = pairs(parts)
    if kind == "drr":
        return minor(name), 0, attribute(1, u32(said.get("quantum", 1514)))
    above = said.get("parent", "root")
    parent = 0xFFFFFFFF if above == "root" else minor(above)
    rate = int(said["rate"]) // 8
    ceil = int(said.get("ceil", said["rate"])) // 8
    hz = 1000000000
    burst = int(said.get("burst", rate // hz + 1600))
    cburst = int(said.get("cburst", ceil // hz + 1600))
    numbers = [ticks(rate, burst), ticks(ceil, cburst), int(said.get("quantum", 0)), 0,
               int(said.get("prio", 0))]
    sizes = int(said.get("overhead", 0)), int(said.get("mpu", 0))
    body = rate_spec(rate, *sizes) + rate_spec(ceil, *sizes) + b"".join(map(u32, numbers))
    return minor(name), parent, attribute(1, body)


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
    for value in (value for key, value in args if key == "class"):
        name, parent, body = class_options(kind, value)
        lines.append(f"class {parent:x} {name:x} {body.hex()}")
    for n, value in enumerate((value for key, value in args if key == "leaf"), 1):
        name, leaf, *parts = value.split(";")
        qdisc(minor(name), 0x100000 * n, leaf, pairs(parts))
    return "\n".join(lines) + "\ninput\n"
