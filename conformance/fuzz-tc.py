#!/usr/bin/env python3
"""Draws words and records what the real `tc` (iproute2 6.1) makes of them. A test reads the same words:
what `tc` refuses must be refused, and the rest must mean what `tc` tells the kernel.

    conformance/fuzz-tc.py SEED COUNT     # COUNT for each discipline; prints what differs
    conformance/fuzz-tc.py --record       # rewrites crates/core/tests/data/tc/words.txt

Needs tc, cc and cargo, and no privileges: a library in front of libc keeps the message from leaving.
A block is `$ WORDS` and `> LENGTH TCA_OPTIONS` (`>` without any), or `!` if `tc` refuses. Zeros at the
end are cut off, and tables of tbf and htb, which follow from rates, left out. Not drawn is what differs
on purpose (docs/DISCIPLINES.md, "What is read and what is not").
"""

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>
ssize_t sendmsg(int to, const struct msghdr *message, int flags) {
    const struct iovec *part = message->msg_iov;
    unsigned short type = part->iov_len < 16 ? 0 : ((unsigned short *)part->iov_base)[2];
    if (type != 36 && type != 40)
        return ((ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg"))(to, message, flags);
    for (size_t n = 0; n < message->msg_iovlen; n++)
        if (write(1, part[n].iov_base, part[n].iov_len) < 0) _exit(9);
    _exit(0);
}
"""

r = random.Random()
TABLES = {"tbf": (2, 3), "htb": (3, 4)}
PLAIN = {
    "whole": lambda: r.choice([str, str, hex])(decimal()), "decimal": lambda: str(decimal()), "small": lambda: str(r.randrange(1, 300)),
    "chance": lambda: r.choice("0.02 0.1 0.5 .01 1e-3 0.0333 0.9 0 0x0 x -".split()),
    "rate": lambda: str(r.randrange(8, 999)) + r.choice(["", ".5", ".", "e1", "000", ".125E+1"]),
    "real": lambda: r.choice([
        "%.*f" % (r.randrange(5), r.random() * 10 ** r.randrange(4)), "%de%d" % (r.randrange(10), r.randrange(-2, 3)),
        str(r.randrange(10 ** r.randrange(1, 5))), r.choice([".5", "5.", "+3", "1.e1", "1e+2", "20", "1000", "0x5dc"])])}
UNITS = {
    "rate": "bit kbit mbit gbit kibit mibit gibit bps kbps mbps kibps mibps kb k",
    "time": " ms us msec usecs msecs ns m", "size": " b k kb mb kbit mbit t bit"}
NONSENSE = "x 1.5.5 mbit - 1x 5mbitx e5 . 3e 1,5 --".split()
# Behind `=` the kind of the value, or what it may be. A beginning behind `:` is mostly there.
GRAMMAR = """
cake bandwidth=rate rtt=20ms|0x50ms|1.5s|19|2e2|20ns|x memlimit=size fwmark=whole overhead=small mpu=small diffserv3 diffserv4 diffserv8
 diffserv besteffort precedence unlimited autorate-ingress triple-isolate dual-srchost dual-dsthost flows hosts srchost dsthost flowblind
 nat nonat wash nowash ingress egress ack-filter ack-filter-aggressive no-ack-filter split-gso no-split-gso raw conservative atm ptm noatm
 ethernet ether-vlan docsis pppoe-ptm bridged-ptm pppoe-vcmux pppoe-llcsnap pppoa-vcmux pppoa-llc bridged-vcmux bridged-llcsnap ipoa-vcmux
 ipoa-llcsnap via-ethernet datacenter ether-all :lan :
codel limit=whole target=time interval=time ce_threshold=time ecn noecn
fq_codel limit=whole flows=0|1|64|0x400|65536|x quantum=0|1|300|0x5ea|1048576|1k target=time interval=time ce_threshold=time
 ce_threshold_selector=1/3|0x4/0xfc|5/0|256/1|1|1/|1/x|1/2/3 memory_limit=size drop_batch=whole ecn noecn
pie limit=whole target=time tupdate=time alpha=whole beta=whole ecn noecn bytemode nobytemode dq_rate_estimator no_dq_rate_estimator
fq_pie limit=whole flows=0|1|64|0x400|65535|x quantum=0|1|300|0x5ea|1mb|2k memory_limit=size ecn_prob=whole target=time tupdate=time
 alpha=whole beta=whole ecn noecn bytemode nobytemode dq_rate_estimator no_dq_rate_estimator
red limit=400kb|0x100000 min=30000|10kb|8000 max=90000|40kb avpkt=1000|500|1500 burst=55|20|0x40 bandwidth=2mbit|0.1gbit|9gbit|30gbit
 probability=0.02|0.1|.9|1e-3|0.0333|x|- ecn harddrop nodrop adaptive adaptative :limit:400000:avpkt:1000 :limit:100k:avpkt:1k:burst:55
sfq limit=whole perturb=decimal quantum=1514|300|4k|0x800|1mb|x divisor=64|1024|1|65536|0x80 flows=whole depth=whole headdrop
 redflowlimit=30000|100000|0x8000|50 min=8000|1000 max=90000|20000|x avpkt=1000|500|1500 burst=55|20|0x40 ecn harddrop
 probability=0.02|0.1|.9|1e-3|0.0333|x|- : :redflowlimit:100000
sfb limit=decimal rehash=decimal db=decimal target=small max=small increment=chance decrement=chance penalty_rate=decimal
 penalty_burst=decimal
tbf rate=rate burst=size buffer=size maxburst=15k|15k/8|0x800|9kb/3 peakrate=10mbit|20mbit|3e6kbit mtu=1514|2k|0x700 minburst=size
 limit=30k|1mb|0x4000 latency=50ms|4e5|0.4s lat=0.9s|20us|x :rate:1mbit:burst:10k:limit:30k :rate:5mbit:burst:15k:latency:50ms
htb default=10|0x20|ff|0|0X1F|x r2q=decimal direct_qlen=small debug=whole
htb:class:1:10 rate=rate ceil=rate burst=size buffer=size maxburst=15k|15k/8|0x800|9kb/3 cburst=size cbuffer=size cmaxburst=size
 prio=decimal quantum=decimal overhead=small mpu=small linklayer=ethernet|atm|adsl|ppp :rate:1mbit :rate:5mbit:ceil:1gbit
drr:class:1:10 quantum=1514|3k|0x200|1e3|x
pfifo limit=size
bfifo limit=size
pfifo_head_drop limit=size
"""


def decimal():
    edges = [0, 1, 255, 256, 1514, 65535, 65536, 65537, 1 << 20, 2**31, 2**32 - 1, 2**32]
    return r.choice([r.randrange(40), r.randrange(1, 40), r.randrange(1, 9999), r.choice(edges)])


def value(kind):
    if "|" in kind or kind != "chance" and r.random() < 0.04:
        return r.choice(kind.split("|") if "|" in kind else NONSENSE)
    unit = r.choice(UNITS.get(kind, "").split(" "))
    return PLAIN.get(kind, PLAIN["real"])() + r.choice([unit, unit, unit.upper(), unit.capitalize()])


def drawn(line):
    name, *known = line.split()
    begin = r.choice([word for word in known if word[0] == ":"] or [":"]) if r.random() < 0.9 else ":"
    words = [[]]
    for keyword in r.choices([word for word in known if word[0] != ":"], k=r.choice([0, 1, 1, 1, 2, 2, 3, 5, 8])):
        keyword, _, kind = keyword.partition("=")
        words.append([keyword] + ([value(kind)] if kind and r.random() < 0.98 else []))
    r.shuffle(words)
    words.append(r.choice([["nonsense"], ["limt"], ["limt"]] + [[]] * 100))
    return " ".join([*name.split(":", 2), *filter(None, begin.split(":")), *sum(words, [])])


def attributes(data):
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        whole, data = data[:(length + 3) & ~3], data[(length + 3) & ~3:]
        yield number & 0x3FFF, whole, whole[4:length]


def block(words, library):
    name, *rest = words.split()
    place = ["qdisc", "add", "dev", "lo", "root"]
    if rest[:1] == ["class"]:
        place, rest = ["class", "add", "dev", "lo", "parent", "1:", "classid", rest[1]], rest[2:]
    said = subprocess.run(["tc", *place, name, *rest], env={**os.environ, "LD_PRELOAD": library}, capture_output=True)
    if said.returncode:
        return f"$ {words}\n!\n"
    options = next((payload for number, _, payload in attributes(said.stdout[36:]) if number == 2), None)
    if name in ("tbf", "htb"):
        options = b"".join(whole for number, whole, _ in attributes(options) if number not in TABLES[name])
    return f"$ {words}\n>" + ("\n" if options is None else f" {len(options)} {options.rstrip(bytes(1)).hex()}\n")


def main():
    has = all(map(shutil.which, ["tc", "cc", "cargo"]))
    if not has or "iproute2-6.1." not in subprocess.run(["tc", "-V"], capture_output=True, text=True).stdout:
        return print("NOT RUN: words against tc: iproute2 6.1, cc and cargo are needed")
    record = sys.argv[1:] == ["--record"]
    seed, count = (1, 40) if record else map(int, sys.argv[1:])
    r.seed(seed)
    lines = GRAMMAR.strip().replace("\n ", " ").split("\n")
    lines = dict.fromkeys(drawn(line) for line in lines for _ in range(count))
    with tempfile.TemporaryDirectory() as directory:
        library = f"{directory}/front.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=LIBRARY, text=True, check=True)
        file = ROOT / "crates/core/tests/data/tc/words.txt" if record else Path(directory) / "words.txt"
        file.write_text("# Recorded by conformance/fuzz-tc.py from iproute2 6.1.\n" + "".join(block(words, library) for words in lines))
        test = ["cargo", "test", "--quiet", "-p", "simnel-core", "--test", "tc_recorded", "words", "--", "--nocapture"]
        sys.exit(subprocess.run(test, cwd=ROOT, env={**os.environ, "TC_WORDS": str(file)}).returncode)


if __name__ == "__main__":
    main()
