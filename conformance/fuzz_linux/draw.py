"""Draws a discipline's settings, and what arrives."""
import math

from fuzz_linux.attributes import FLAGS, TIMES

# Settings.

# Not any number between two: powers of two, and seconds of which a case has few.
AS_LISTED = ("divisor", "perturb")


def pick(rng, values):
    """One of the values; of three or more also any between the least and the largest."""
    if len(set(values)) < 3 or rng.random() < 0.6:
        return rng.choice(values)
    return round(math.exp(rng.uniform(math.log(max(min(values), 1)), math.log(max(values)))))


def some(rng, choices, share=0.5):
    """A part of the settings, each drawn from its values."""
    return {key: rng.choice(values) if key in AS_LISTED else pick(rng, values)
            for key, values in choices.items() if rng.random() < share}


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
    # Weights in 1/256 Hz. Whole super-packets: ours splits none.
    "dualpi2": dict(limit=[2, 20, 300, 10000], memory_limit=[30000, 200000, 4000000],
                    target=[1000, 15000, 50000], tupdate=[5000, 16000, 50000],
                    alpha=[5, 41, 400], beta=[50, 819, 5000], step=[200, 1000, 20000],
                    step_in_packets=[0, 0, 1], min_qlen_step=[1, 5, 40], coupling=[1, 2, 5],
                    overload=[0, 1], early=[0, 1], protection=[0, 10, 50, 90, 100], mask=[1, 3]),
    "sfq": dict(limit=[5, 40, 127], depth=[3, 10, 127], flows=[4, 16, 127], divisor=[64, 1024],
                quantum=[1514, 3000], headdrop=[1], perturb=[1, 2]),
    "pfifo": dict(limit=[1, 20, 100]),
    "bfifo": dict(limit=[3000, 60000]),
    "pfifo_head_drop": dict(limit=[1, 20, 100]),
}
KINDS = [*CHILDREN, "cake", "sfb", "red", "tbf", "htb", "drr"]
# What Linux has had since a release only.
NEW = {"dualpi2": "7.3"}
# In Linux all draw from one stream, ours each from one of its own: one of them to a case.
DICE = ("pie", "sfq")
LEAVES = ("codel", "fq_codel", "pie", "sfq", "pfifo", "bfifo")
CAKE_MODES = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
CAKE_FLOWS = ("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost",
              "triple-isolate")


NEGATED = {"ecn": "noecn", "bytemode": "nobytemode", "dq_rate_estimator": "no_dq_rate_estimator"}


# dualpi2's words: of a number, or of each value.
DUALPI2 = {
    "limit": "limit {}", "memory_limit": "memlimit {}B", "target": "target {}us",
    "tupdate": "tupdate {}us", "min_qlen_step": "min_qlen_step {}",
    "coupling": "coupling_factor {}", "protection": "classic_protection {}%",
    "overload": ("overflow", "drop_on_overload"), "early": ("drop_dequeue", "drop_enqueue"),
    "mask": ("", "l4s_ect", "", "any_ect"), "gso": ("no_split_gso", "split_gso"),
}


def dualpi2_words(get):
    out = ["dualpi2"]
    for key, value in get.items():
        if key == "step":
            out.append(f"step_thresh {value}{'p' if get.get('step_in_packets') else 'us'}")
        elif key in ("alpha", "beta"):
            out.append(f"{key} {value / 256:.8f}")
        elif key in DUALPI2:
            form = DUALPI2[key]
            out.append(form.format(value) if isinstance(form, str) else form[value])
    return " ".join(out)


def words(kind, get):
    if kind == "dualpi2":
        return dualpi2_words(get)
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
    rate = rng.choice([0, pick(rng, [64000, 128000, 600000, 3000000, 10000000, 50000000]) // 8 * 8])
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
        get["rtt"] = RTTS.get(name) or pick(rng, [100, 1000, 10000, 30000, 300000, 2000000])
        get["target"] = max(get["rtt"] // 20, 1)
        text.append(name if name in RTTS else f"rtt {get['rtt']}us")
    if rng.random() < 0.4:
        get["memlimit"] = pick(rng, [32768, 100000, 1000000])
        text.append(f"memlimit {get['memlimit']}")
    if rng.random() < 0.5:
        draw_link(rng, get, text)
    if rng.random() < 0.1:
        get["fwmark"] = rng.choice([1, 0xf0])
        text.append(f"fwmark {get['fwmark']}")
    if rng.random() < 0.1:
        text.append("nonat")
    if rate and rng.random() < 0.1:
        get["autorate"] = 1
        text.append("autorate-ingress")
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
        if overhead is not None and rng.random() < 0.2:
            get["overhead"] += 4
            text.append("ether-vlan")
        return
    get["overhead"], get["atm"] = rng.choice([-20, 0, 18, 44, rng.randint(-64, 256)]), rng.randrange(3)
    text += [f"overhead {get['overhead']}", ("noatm", "atm", "ptm")[get["atm"]]]
    get["overhead"] &= 0xFFFFFFFF
    if rng.random() < 0.5:
        get["mpu"] = rng.randint(0, 256)
        text.append(f"mpu {get['mpu']}")


def draw_classes(rng, kind):
    names, args = [f"8001:{10 * (n + 1)}" for n in range(rng.randint(1, 4))], []
    if kind == "htb":
        # Without one of these what names no class is not shaped.
        if rng.random() < 0.8:
            args.append(f"default=0x{rng.choice(names).split(':')[1]}")
        args += [f"{key}={pick(rng, values)}" for key, values in
                 dict(r2q=[1, 10, 100], direct_qlen=[1, 20, 1000]).items() if rng.random() < 0.2]
        root = pick(rng, [1000000, 5000000, 10000000])
        if len(names) > 1:
            args.append(f"class=8001:1;parent=root;rate={root};ceil={root};burst=15000;"
                        "cburst=15000")
    for name in names:
        if kind == "drr":
            args.append(f"class={name};quantum={pick(rng, [100, 1514, 3000, 9000])}")
            continue
        rate = pick(rng, [200000, 1000000, 2000000])
        parent = "1:1" if len(names) > 1 else "root"
        text = f"class={name};parent={parent};rate={rate};ceil={rng.choice([rate, root])}"
        text += f";burst={pick(rng, [100, 1600, 6000])};cburst={pick(rng, [100, 1600, 8000])}"
        text += f";prio={rng.randrange(8)}"
        if rng.random() < 0.9:
            text += f";quantum={pick(rng, [1000, 1514, 3000])}"
        for key, values in dict(overhead=[1, 24, 60], mpu=[64, 84, 200]).items():
            if rng.random() < 0.15:
                text += f";{key}={pick(rng, values)}"
        args.append(text)
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
        get = {key: pick(rng, values) for key, values in dict(
            rehash=[300, 700, 5000], db=[0, 100, 300], limit=[30, 200, 1000], max=[10, 16, 25],
            target=[1, 5, 9], increment=[66, 655, 6553], decrement=[11, 66, 600],
            penalty_rate=[0, 10, 100], penalty_burst=[1, 5, 20]).items()}
    elif kind == "red":
        low = pick(rng, [3000, 10000, 30000])
        # Of the sizes of packets ours tries these when it is told a weight and a table.
        get = dict(limit=pick(rng, [60000, 100000, 400000]), min=low,
                   max=low * rng.choice([2, 3, 3, 5]), avpkt=rng.choice([500, 1000, 1500]),
                   bandwidth=pick(rng, [1000000, 10000000, 100000000]),
                   probability=rng.choice([0.01, 0.02, 0.1, 0.5, 0.9]))
        # tc's own choice may be too small for a weight.
        if rng.random() < 0.3 or get["min"] // get["avpkt"] < 10:
            get["burst"] = get["max"] // get["avpkt"] + rng.randint(1, 40)
        get.update(some(rng, dict(ecn=[1], adaptive=[1])))
        if get.get("ecn"):
            # Linux takes nodrop beside adaptive from nobody.
            get.update(some(rng, dict(harddrop=[1], **({} if "adaptive" in get else
                                                       dict(nodrop=[1])))))
    elif kind == "tbf":
        get = dict(rate=pick(rng, [200000, 1000000, 5000000, 20000000]),
                   burst=pick(rng, [1000, 1600, 5000, 20000]))
        if rng.random() < 0.7:
            get["limit"] = pick(rng, [5000, 20000, 60000])
        else:
            get["latency"] = pick(rng, [10000, 50000, 100000])
        get.update(some(rng, dict(overhead=[1, 24, 60], mpu=[64, 84, 200]), 0.2))
        if rng.random() < 0.3:
            get.update(peakrate=get["rate"] * rng.choice([2, 2, 3]) // rng.choice([1, 1, 2]) + 8,
                       mtu=pick(rng, [1514, 2000, 3000]))
    else:
        get = some(rng, CHILDREN[kind])
    if kind == "dualpi2":
        get["gso"] = 0
    if kind == "sfq" and rng.random() < 0.4:
        low = pick(rng, [2000, 3000, 8000])
        get.update(redflowlimit=pick(rng, [30000, 60000, 100000]), min=low, max=3 * low, avpkt=1000,
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

def draw_traffic(rng, names):
    """Who sends what how often: crates/lab/src/conformance/fuzz/traffic.rs makes packets of it."""
    hosts = rng.choice([1, 1, 3, 20, 250])
    flows, count = [], rng.choice([1, 2, 5, 30, 200])
    for n in range(count):
        is_tcp, is_v6 = rng.random() < 0.4, rng.random() < 0.15
        host = rng.randrange(hosts) + 1
        source = f"fd00::{host:x}" if is_v6 else f"10.0.0.{host}"
        target = f"fd01::{rng.randrange(3) + 1:x}" if is_v6 else f"10.1.0.{rng.randrange(3) + 1}"
        ports = f"{1024 + n},{rng.choice([53, 80, 443])}"
        flows.append(dict(
            tuple=f"{source},{target},{ports},{6 if is_tcp else 17}",
            dscp=rng.choice([0, 0, 0, 8, 10, 34, 46, 48, rng.randrange(64)]),
            ecn=rng.choice([0, 0, 1, 2, 3]) if rng.random() < 0.6 else 2,
            size=rng.choice([100, 590, 1514, 1514, rng.randint(60, 1514), 9014]
                            if rng.random() < 0.3 else [100, 590, 1514, 1514]),
            vary=rng.random() < 0.2, stamps=is_tcp and rng.random() < 0.7,
            acks=is_tcp and rng.random() < 0.6, **{"class": rng.choice(names) if names else ""}))
    gaps = [rng.choice([20000, 200000, 600000, 1500000])]
    if rng.random() < 0.4:
        gaps += [int(10 ** rng.uniform(3, 6.5)) for _ in range(rng.randint(1, 3))]
    return dict(seed=rng.getrandbits(63), count=rng.choice([300, 1500, 4000, 20000]), gaps=gaps,
                flows=flows)
