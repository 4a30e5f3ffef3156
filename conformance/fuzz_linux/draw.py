"""Draws a discipline's settings, and what arrives."""
from fuzz_linux.attributes import FLAGS, TIMES

# Settings.

def some(rng, choices, share=0.5):
    """A part of the settings, each drawn from its values."""
    return {key: rng.choice(values) for key, values in choices.items() if rng.random() < share}


CHILDREN = {
    "codel": dict(limit=[1, 5, 30, 200, 1000], target=[1000, 5000, 20000],
                  interval=[10000, 100000], ecn=[0, 1, 1], ce_threshold=[500, 1000, 10000]),
    "fq_codel": dict(limit=[5, 50, 200, 1000], flows=[1, 2, 8, 64, 1024], target=[2000, 5000],
                     interval=[20000, 100000], quantum=[300, 1514, 5000], ecn=[0, 1],
                     ce_threshold=[1000], drop_batch=[1, 4, 64], memory_limit=[50000, 200000]),
    # Not alpha 0: tc leaves it out, so that the default counts.
    "pie": dict(limit=[10, 50, 1000], target=[5000, 15000, 30000], tupdate=[5000, 15000, 30000],
                alpha=[1, 2, 8], beta=[1, 20, 32], ecn=[0, 1, 1], bytemode=[0, 1],
                dq_rate_estimator=[0, 1]),
    "fq_pie": dict(limit=[10, 100, 2000], flows=[1, 8, 1024], target=[5000, 15000],
                   tupdate=[5000, 15000], alpha=[1, 2], beta=[10, 20], quantum=[300, 1514],
                   ecn_prob=[1, 10, 50], ecn=[0, 1, 1], bytemode=[0, 1],
                   dq_rate_estimator=[0, 1], memory_limit=[50000, 200000, 1000000]),
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


NEGATED = {"ecn": "noecn", "bytemode": "nobytemode", "dq_rate_estimator": "no_dq_rate_estimator"}


def words(kind, get):
    out = [kind]
    for key, value in get.items():
        if key in FLAGS:
            out += [key] if value else [NEGATED[key]] if key in NEGATED else []
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


# What cake's words for links stand for: overhead, cells, least size.
LINKS = {
    "raw": (None, 0, None), "conservative": (48, 1, None), "docsis": (18, 0, 64),
    "ethernet": (38, 0, 84), "pppoe-ptm": (30, 2, None), "bridged-ptm": (22, 2, None),
    "pppoe-vcmux": (32, 1, None), "pppoe-llcsnap": (40, 1, None), "pppoa-vcmux": (10, 1, None),
    "pppoa-llc": (14, 1, None), "bridged-vcmux": (24, 1, None), "bridged-llcsnap": (32, 1, None),
    "ipoa-vcmux": (8, 1, None), "ipoa-llcsnap": (16, 1, None),
}
# Its words for round-trip times, in microseconds.
RTTS = {"datacentre": 100, "lan": 1000, "metro": 10000, "regional": 30000, "internet": 100000,
        "oceanic": 300000, "satellite": 1000000, "interplanetary": 1000000000}


def draw_cake(rng):
    get, text = {}, ["cake"]
    rate = rng.choice([0, 128000, 600000, 3000000, 10000000, 50000000])
    get["rate"] = rate
    text.append(f"bandwidth {rate}bit" if rate else "unlimited")
    get["diffserv"] = rng.randrange(5)
    get["flow"] = rng.randrange(8)
    text += [CAKE_MODES[get["diffserv"]], CAKE_FLOWS[get["flow"]]]
    for key, yes, no in (("ingress", "ingress", "egress"), ("wash", "wash", "nowash"),
                         ("gso", "split-gso", "no-split-gso")):
        if rng.random() < 0.3:
            get[key] = rng.choice([0, 1, 1])
            text.append(yes if get[key] else no)
    if rng.random() < 0.4:
        get["ack"] = rng.choice([0, 1, 1, 2, 2])
        text.append(("no-ack-filter", "ack-filter", "ack-filter-aggressive")[get["ack"]])
    if rng.random() < 0.4:
        name = rng.choice(["rtt", *RTTS])
        get["rtt"] = RTTS.get(name) or rng.choice([1000, 10000, 30000, 300000])
        get["target"] = max(get["rtt"] // 20, 1)
        text.append(name if name in RTTS else f"rtt {get['rtt']}us")
    if rng.random() < 0.4:
        get["memlimit"] = rng.choice([32768, 100000, 1000000])
        text.append(f"memlimit {get['memlimit']}")
    if get.get("ack") and get.get("memlimit", 1 << 32) > 100000:
        # Ours looks at 256 packets of a queue: cake-ackfilter/beyond-bound in the ledger.
        text = [word for word in text if not word.startswith("memlimit")] + ["memlimit 100000"]
        get["memlimit"] = 100000
    if rng.random() < 0.5:
        draw_link(rng, get, text)
    return " ".join(text), [f"{key}={value}" for key, value in get.items()]


def draw_link(rng, get, text):
    """Overhead, cells and least size, by a name or one by one."""
    if rng.random() < 0.5:
        name = rng.choice(list(LINKS))
        overhead, get["atm"], mpu = LINKS[name]
        if overhead is None:
            get["raw"] = 1
        else:
            get["overhead"] = overhead
        if mpu:
            get["mpu"] = mpu
        text.append(name)
        return
    get["overhead"], get["atm"] = rng.choice([-20, 0, 18, 44]), rng.randrange(3)
    text += [f"overhead {get['overhead']}", ("noatm", "atm", "ptm")[get["atm"]]]
    get["overhead"] &= 0xFFFFFFFF
    if rng.random() < 0.5:
        get["mpu"] = rng.choice([64, 84, 200])
        text.append(f"mpu {get['mpu']}")


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
            # Linux's timer drops when nobody calls: drr/sfq-perturb in the ledger.
            said.pop("perturb", None)
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
    get = draw_plain(rng, kind)
    return words(kind, get), [f"{key}={value}" for key, value in get.items()], []


def draw_plain(rng, kind):
    """Settings of a discipline without classes."""
    if kind == "sfb":
        get = {key: rng.choice(values) for key, values in dict(
            rehash=[300, 700, 5000], db=[0, 100, 300], limit=[30, 200, 1000], max=[10, 25],
            target=[5, 9], increment=[66, 655, 6553], decrement=[11, 66, 600],
            penalty_rate=[0, 10, 100], penalty_burst=[1, 20]).items()}
    elif kind == "red":
        low = rng.choice([10000, 30000])
        get = dict(limit=rng.choice([60000, 400000]), min=low, max=3 * low, avpkt=1000,
                   bandwidth=10000000, probability=rng.choice([0.02, 0.1, 0.5]))
        get.update(some(rng, dict(ecn=[1], adaptive=[1])))
        if get.get("ecn"):
            # Linux takes nodrop beside adaptive from nobody.
            get.update(some(rng, dict(harddrop=[1], **({} if "adaptive" in get else
                                                       dict(nodrop=[1])))))
    elif kind == "tbf":
        get = dict(rate=rng.choice([1000000, 5000000, 20000000]),
                   burst=rng.choice([1600, 5000, 20000]), limit=rng.choice([5000, 60000]))
        if rng.random() < 0.3:
            get.update(peakrate=2 * get["rate"], mtu=rng.choice([1514, 3000]))
    else:
        get = some(rng, CHILDREN[kind])
    if kind == "sfq" and rng.random() < 0.4:
        low = rng.choice([3000, 8000])
        get.update(redflowlimit=rng.choice([30000, 100000]), min=low, max=3 * low, avpkt=1000,
                   probability=rng.choice([0.02, 0.1, 0.5]))
        get.update(some(rng, dict(burst=[10, 20], ecn=[1])))
        if "ecn" in get:
            get.update(some(rng, dict(harddrop=[1])))
    if "perturb" in get:
        # Where a new key fills a queue, Linux's timer drops, ours the next call: long queues.
        get = {key: value for key, value in get.items()
               if key not in ("depth", "flows", "divisor", "limit")}
    return get


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
