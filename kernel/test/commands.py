"""Commands for queue disciplines, drawn at random, for tests inside a guest."""

import random
import struct

from tc import NESTED, attribute

NUMBERS = [0, 1, 2, 3, 7, 10, 64, 100, 127, 255, 256, 257, 1000, 1024, 1025, 10000, 65535, 65536, 65537, 1 << 20,
           (1 << 20) + 1, 1 << 24, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
TIMES = ["0", "1us", "100us", "1ms", "5ms", "15ms", "100ms", "1s", "60s"]
SIZES = ["0", "1", "100", "256", "300", "1514", "3000", "64kb", "1mb", "100mb"]
COUNTS = ["0", "1", "2", "10", "127", "128", "1000", "1024", "65536", "70000"]
# Words of each, with what may follow them.
PIE = {"limit": COUNTS, "target": TIMES[:-1], "tupdate": TIMES, "alpha": ["0", "1", "2", "32"], "beta": ["0", "20", "32"],
       "ecn": None, "noecn": None, "bytemode": None, "nobytemode": None, "dq_rate_estimator": None,
       "no_dq_rate_estimator": None}
CODEL = {"limit": COUNTS, "target": TIMES, "interval": TIMES, "ce_threshold": TIMES, "ecn": None, "noecn": None}
QUEUES = {"flows": COUNTS, "quantum": SIZES, "memory_limit": SIZES}
WORDS = {
    "cake": {"bandwidth": ["1mbit", "100mbit", "10gbit", "8bit"], "unlimited": None, "rtt": TIMES, "memlimit": SIZES,
             "overhead": ["-64", "0", "18", "44", "256"], "mpu": ["0", "64", "256"], "fwmark": ["0", "0xff", "0xf0"],
             **{word: None for word in "besteffort precedence diffserv3 diffserv4 diffserv8 flowblind srchost dsthost "
                "hosts flows dual-srchost dual-dsthost triple-isolate nat nonat wash nowash ingress egress raw "
                "ack-filter no-ack-filter ack-filter-aggressive split-gso no-split-gso atm ptm noatm docsis conservative "
                "ethernet pppoe-ptm ether-vlan autorate-ingress metro lan internet".split()}},
    "codel": CODEL,
    "fq_codel": CODEL | QUEUES | {"drop_batch": COUNTS, "ce_threshold_selector": ["0x1/0x3", "0/0"]},
    "pie": PIE,
    "fq_pie": PIE | QUEUES | {"ecn_prob": ["0", "10", "99", "100"]},
    "red": {"limit": SIZES, "min": SIZES, "max": SIZES, "avpkt": SIZES, "burst": ["1", "10", "55"], "ecn": None,
            "harddrop": None, "nodrop": None, "adaptive": None, "probability": ["0", "0.02", "1"],
            "bandwidth": ["10mbit"]},
    "sfb": {word: COUNTS for word in "rehash db limit max target penalty_rate penalty_burst".split()}
    | {"increment": ["0.1", "0.0005"], "decrement": ["0.1", "0.0005"]},
    "sfq": {"limit": COUNTS, "perturb": ["0", "1", "600"], "quantum": SIZES, "divisor": COUNTS, "flows": COUNTS,
            "depth": COUNTS, "headdrop": None, "redflowlimit": SIZES, "min": SIZES, "max": SIZES, "avpkt": SIZES,
            "burst": ["1", "10"], "ecn": None, "harddrop": None, "probability": ["0.02", "1"]},
    "dualpi2": {"limit": COUNTS, "memlimit": SIZES, "target": TIMES, "tupdate": TIMES, "max_rtt": TIMES,
                "coupling_factor": ["0", "1", "2", "255"], "step_thresh": ["1ms", "5p"], "min_qlen_step": COUNTS,
                "classic_protection": ["0", "10", "100"], "drop_on_overload": None, "overflow": None,
                "drop_dequeue": None, "drop_enqueue": None, "l4s_ect": None, "any_ect": None, "split_gso": None,
                "no_split_gso": None, "typical_rtt": TIMES, "alpha": ["0", "0.16", "1"], "beta": ["0", "3.2", "100"]},
}
# Attributes: their number, and those that are structures.
ATTRIBUTES = {"cake": 19, "codel": 6, "fq_codel": 12, "pie": 9, "fq_pie": 13, "red": 6, "sfb": 3, "sfq": 1,
              "dualpi2": 16}
STRUCTURES = {("red", 1): 16, ("red", 2): 256, ("sfb", 1): 44} | {("dualpi2", number): 1 for number in range(10, 16)}
# Larger ones are refused or shown as these, or shown wrong by Linux: docs/KERNEL.md.
MOST = {("cake", 3): 4, ("cake", 4): 2, ("cake", 5): 7, ("cake", 6): 256, ("cake", 14): 256, ("cake", 16): 2,
        ("pie", 1): 1 << 20, ("pie", 4): 10, ("pie", 5): 10,
        ("fq_pie", 3): 1 << 20, ("fq_pie", 5): 10, ("fq_pie", 6): 10, ("fq_pie", 9): 100}
BASES = {"red": "limit 60000 min 5000 max 15000 avpkt 1000 burst 8 bandwidth 10mbit"}
# A way to a place, and the place's name.
PLACES = [
    ([], "root"),
    (["root handle 1: tbf rate 400bit burst 2000 limit 1mb"], "parent 1:1"),
    (["root handle 1: tbf rate 400bit burst 2000 limit 1mb"], "parent 1:1"),
    (["root handle 1: htb default 10", "class parent 1: classid 1:10 htb rate 400bit burst 2000 cburst 2000"], "parent 1:10"),
    (["root handle 1: prio"], "parent 1:2"),
    (["root handle 1: drr", "class parent 1: classid 1:3 drr"], "parent 1:3"),
    (["root handle 1: mq"], "parent 1:2"),
]

# What is the same whatever chance wants: red's average is never between `min` and `max`, nor do sfb's bins reach `target`.
FIRM = {"red": [f"limit 60000 avpkt 1000 bandwidth 10mbit {more}" for more in (
            "min 50000 max 59000 burst 60", "min 5000 max 5001 burst 8", "min 5000 max 5001 burst 8 ecn",
            "min 5000 max 5001 burst 8 ecn nodrop", "min 5000 max 5001 burst 8 ecn harddrop")],
        "sfb": ["max 10000 target 10000", "max 10000 target 10000 limit 12", "max 5 target 10000", "max 10 target 10000 limit 7"]}
# Linux's sfb forgets no packet of which one below tells nothing, or whose own bytes it overwrites.
CHILDREN = {"sfb": ["pfifo", "pfifo limit 7", "bfifo limit 3000", "prio", "tbf rate 400bit burst 2000 limit 5000"]}
CHILDREN["red"] = CHILDREN["sfb"] + ["pfifo_head_drop limit 3", "fq_codel", "fq_codel limit 5", "drr", "netem limit 9",
                                     "red " + FIRM["red"][0], "qfq"]


class Commands:
    """Random commands for one kind; the same ones from the same seed."""

    def __init__(self, seed, kind):
        self.draw, self.kind = random.Random(f"{seed} {kind}"), kind
        self.ways, self.place = self.draw.choice(PLACES)
        self.device = "t0"

    def words(self, kind):
        pool, draw = WORDS[kind], self.draw
        made = [BASES.get(kind, "")] if draw.random() < 0.9 else []
        drawn = draw.sample(sorted(pool), min(len(pool), draw.choice([0, 0, 1, 1, 2, 3, 5])))
        # Beside flows, which it refuses, Linux's takes a part of a change.
        for word in ["flows"] if kind == "fq_pie" and "flows" in drawn else drawn:
            made.append(word)
            if pool[word]:
                made.append(draw.choice(pool[word]))
        return " ".join(made)

    def message(self):
        """A request whose attributes may be wrong in any way."""
        draw, made = self.draw, b""
        if self.kind == "sfq":
            words = [draw.choice(NUMBERS[:14]) if draw.random() < 0.4 else 0 for _ in range(18)]
            made = struct.pack("18I", *words)[: draw.choice([72, 72, 72, 20, 19, 24, 71, 76])]
        for _ in range(draw.choice([0, 1, 1, 2, 3]) if self.kind != "sfq" else 0):
            number = draw.randint(1, ATTRIBUTES[self.kind])
            if (self.kind, number) == ("fq_pie", 2):
                continue  # flows, as above
            most = MOST.get((self.kind, number), 0xFFFFFFFF)
            value = struct.pack("I", draw.choice([one for one in NUMBERS if one <= most]))
            size = STRUCTURES.get((self.kind, number))
            if size:
                value = bytes(draw.choice([0, 0, 1, 4, 10, 14, 31]) for _ in range(size))
            if self.kind == "sfb" and size:
                # Steps of more than 1 are shown as 1.
                value = value[:18] + bytes(2) + value[20:22] + bytes(2) + value[24:]
            wide = draw.random()
            if wide < 0.1:
                value = value[: draw.randrange(len(value) + 1)]
            elif wide < 0.2:
                value += bytes(4)
            elif wide < 0.3:
                value = value[:1]
            made += attribute(number, value)
        if self.kind == "sfq":
            return "message", "add", made, 0
        verb, flag = draw.choice(["add", "replace", "change", "change"]), draw.choice([NESTED, NESTED, NESTED, 0])
        return "message", verb, made if draw.random() < 0.95 else None, flag

    def next(self):
        draw, device, place = self.draw, self.device, self.place
        handle = draw.choice(["", "", "handle 10:", "handle 10:", "handle 20:", "handle 1:", "handle ffff:"])
        what = draw.randrange(100)
        if what < 34:
            verb = draw.choice(["add", "replace", "replace", "change", "change", "change", "link"])
            other = draw.random() < 0.08
            kind = draw.choice(["pfifo", "tbf rate 1mbit burst 2000 limit 9000", "prio"]) if other else self.kind
            if self.kind == "sfq":
                # Linux's takes no change.
                return f"tc qdisc del dev {device} {place}", f"tc qdisc add dev {device} {place} {handle} sfq {self.words('sfq')}"
            return f"tc qdisc {verb} dev {device} {place} {handle} {kind} {'' if other else self.words(self.kind)}"
        if what < 50:
            return self.message()
        if what < 54:
            return f"tc qdisc del dev {device} {place} {handle}"
        if what < 60:
            return draw.choice(["tc class {} dev {} parent 10: classid 10:{} " + self.kind,
                                "tc class {} dev {} classid 10:{} " + self.kind]).format(
                draw.choice(["add", "change", "del", "replace"]), device, draw.choice("0125"))
        if what < 64:
            child = draw.choice(["pfifo limit 7", "bfifo", "prio", self.kind + " " + self.words(self.kind)])
            return f"tc qdisc {draw.choice(['add', 'replace'])} dev {device} parent 10:{draw.choice('0125')} handle 30: {child}"
        if what < 65:
            return f"tc qdisc del dev {device} parent 10:{draw.choice('0125')}"
        if what < 71:
            match = draw.choice(["matchall", "handle 2 fw", "u32 match u32 0 0"])
            return (f"tc filter add dev {device} parent {draw.choice(['10:', '10:', '10:1', '20:'])} protocol all "
                    f"pref {draw.randint(1, 2)} {match} classid {draw.choice(['10', '10', '7'])}:{draw.choice('0125')}")
        if what < 73:
            return f"tc filter del dev {device} parent 10:"
        if what < 88:
            priority = draw.choice([0, 0, 0, 1, 0x100000, 0x100001, 0x100002, 0x100005, 0x200001])
            return ("send", draw.choice([1, 3, 40, 300]), draw.choice([1, 1, 5]), draw.choice([60, 500, 1000, 1400]),
                    priority, draw.choice([0, 2]))
        if what < 90:
            return f"ip link set {device} down", f"ip link set {device} up"
        if what < 91:
            return f"ip link set {device} down"
        if what < 93:
            return f"ip link set {device} up"
        if what < 95:
            return f"ip link set {device} mtu {draw.choice([256, 576, 1500, 9000])}"
        if what < 97:
            return f"ip link set {device} txqueuelen {draw.choice([0, 1, 100, 1000])}"
        if what < 98:
            self.device = "t1" if device == "t0" else "t0"
            return f"ip link set {device} down", f"ip link set {device} name {self.device}", f"ip link set {self.device} up"
        if what < 99:
            return (f"ip link set {device} netns other", f"ip -n other link set {device} netns 1",
                    f"ip link set {device} up")
        return "tc qdisc show"


class Below(Commands):
    """Random commands for one kind of CHILDREN, at a firm place, and for what is hung below it."""

    SLOW = "root handle 1: tbf rate 400bit burst 2000 limit 1mb"
    FAST = "root handle 1: tbf rate 1gbit burst 1mb limit 1mb"

    def __init__(self, seed, kind):
        super().__init__(f"{seed} below", kind)
        self.place = "parent 1:1"
        # What finds Linux's sfb full is not shown to filters.
        self.has_filters = self.draw.random() < 0.5
        self.ways = [self.SLOW, "parent 1:1 handle 10: " + self.firm()]
        if kind == "sfb":
            self.ways.append("parent 10:1 handle 30: pfifo")

    def firm(self):
        ways = [way for way in FIRM[self.kind] if self.kind == "red" or not (self.has_filters and "limit" in way)]
        return f"{self.kind} {self.draw.choice(ways)}"

    def next(self):
        draw, device, kind = self.draw, self.device, self.kind
        what = draw.randrange(100)
        one = f"{draw.choice(['add', 'replace', 'replace', 'change'])} dev {device} parent 10:{draw.choice('1115')} " \
              f"handle {draw.choice(['30:', '30:', '40:'])} {draw.choice(CHILDREN[kind])}"
        child = f"tc qdisc replace dev {device} parent 10:1 handle 50: {draw.choice(CHILDREN[kind])}"
        # What is hung below goes with what it has queued; our own queue would stay.
        change = child, f"tc qdisc {draw.choice(['change', 'replace'])} dev {device} parent 1:1 handle 10: {self.firm()}"
        # The bins of Linux's sfb forget packets when it is changed only.
        before, after = ((), ()) if kind == "red" else (change, (child,))
        if what < 25:
            return *before, f"tc qdisc {one}", *after
        if what < 35:
            handle = draw.choice(["", "", "handle 30:", "handle 50:", "handle 10:"])
            return *before, *after, f"tc qdisc del dev {device} parent 10:1 {handle}"
        if what < 45:
            return *change, *after
        if what < 75:
            # Which bins flows share is by chance.
            return "send", draw.choice([1, 3, 10, 40]), draw.choice([1, 5]) if kind == "red" else 1, draw.choice([60, 500, 1400])
        if what < 83:
            return f"tc qdisc change dev {device} {draw.choice([self.SLOW, self.FAST])}"
        if what < 87:
            return f"ip link set {device} down", f"ip link set {device} up"
        if what < 90:
            return (f"tc qdisc del dev {device} parent 1:1", f"tc qdisc add dev {device} parent 1:1 handle 10: {self.firm()}",
                    child)
        if what < 94:
            return f"tc class {draw.choice(['add', 'change', 'del'])} dev {device} parent 10: classid 10:1 {kind}"
        way = f"dev {device} parent 10:{draw.choice(['', '1'])} protocol all matchall classid 10:{draw.choice('12')}"
        if what < 97 and self.has_filters:
            return *before, *after, f"tc filter add {way}"
        return *before, *after, f"tc filter del dev {device} parent 10:"
