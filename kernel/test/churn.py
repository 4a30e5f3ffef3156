"""Traffic while disciplines come, change and go: python3 churn.py SECONDS [SEED].

Inside a guest, with the module loaded. Packets of all kinds (traffic.py) go through the disciplines of
some devices, while these are changed, replaced, deleted, put below others, and devices and namespaces
are removed; where the kernel can, memory fails meanwhile. The module is a debug build, which counts
packets and compares its books. Fails if the kernel complains.
"""

import os
import random
import sys
import time

from failslab import allow, failing
from tc import Tc, complaints, leaks, link, words
from traffic import Traffic

SECONDS = float(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
draw = random.Random(SEED)

WHOLE = [
    "cake", "cake bandwidth 10mbit diffserv4", "cake bandwidth 1gbit diffserv8 ack-filter",
    "cake bandwidth 20mbit besteffort ingress wash nat host-guard", "cake memlimit 100kb",
    "cake bandwidth 5mbit queues 64", "cake bandwidth 10mbit savings 15kb", "cake unlimited flows",
    "fq_codel", "fq_codel limit 50", "fq_codel memory_limit 64kb flows 16", "fq_pie", "pie",
    "fq_pie savings 15kb limit 100", "codel", "cobalt", "blue", "red limit 100kb avpkt 1000",
    "sfq", "sfq perturb 1 depth 10", "sfb", "pfifo limit 7", "bfifo limit 20kb", "drr",
    "tbf rate 5mbit burst 10kb latency 20ms", "dualpi2", "htb rate 10mbit",
    "mq cake bandwidth 10mbit", "mq cake bandwidth 1gbit nat ack-filter ingress",
]
CHANGES = ["bandwidth 3mbit", "diffserv8", "besteffort", "limit 10", "limit 1000", "flows",
           "triple-isolate", "rtt 20ms", "target 1ms", "memlimit 50kb", "unlimited", "ack-filter",
           "no-ack-filter", "queues 32", "nonsense", "bandwidth 1gbit", "ecn", "noecn", "wash"]


def send(tc, *arguments, **named):
    """Sends a request, of whose allocations now and then one fails."""
    failing(draw.choice([0, 0, 0, draw.randint(1, 80)]))
    try:
        tc.send(*arguments, **named)
    except OSError:
        pass  # there was no memory for the answer
    finally:
        failing(0)


def act(tc, device):
    """One thing that an administrator may do."""
    what = draw.random()
    whole = draw.choice(WHOLE)
    if what < 0.45:
        send(tc, "replace", device, "simnel", words(whole))
    elif what < 0.75:
        send(tc, "change", device, "simnel", words(draw.choice(CHANGES)))
    elif what < 0.83:
        send(tc, "del", device, "simnel")
    elif what < 0.88:
        # Below a discipline of Linux's, with a rate so that something is queued.
        os.system(f"tc qdisc replace dev {device} root handle 1: tbf rate 5mbit burst 20kb "
                  "latency 100ms 2>/dev/null")
        send(tc, "replace", device, "simnel", words(whole), parent=0x10001, handle=0x20000)
    elif what < 0.90:
        # Below ours, if the module has these names. Without a child everything is dropped.
        kind = draw.choice(["red limit 60000 avpkt 1000 burst 20 ecn", "sfb"])
        child = draw.choice(["pfifo limit 9", "bfifo limit 9000", "prio", "fq_codel limit 30", "tbf rate 3mbit burst 5kb limit 50kb"])
        os.system(f"exec 2>/dev/null; tc qdisc replace dev {device} root handle 1: tbf rate 5mbit burst 20kb latency 100ms; "
                  f"tc qdisc replace dev {device} parent 1:1 handle 5: {kind}; "
                  f"tc qdisc replace dev {device} parent 5:1 handle 6: {child}")
        if draw.random() < 0.3:
            os.system(f"tc qdisc del dev {device} parent 5:1 2>/dev/null")
    elif what < 0.93:
        tc.dump()
        os.system(f"tc -s class show dev {device} >/dev/null 2>&1")
    elif what < 0.96:
        link("set", device, draw.choice(["down", "up", "up", "up"]))
    else:
        os.system(f"tc filter add dev {device} parent 2: matchall classid :{draw.randint(1, 99)} "
                  "2>/dev/null")


def leave_namespace():
    """A namespace that ends with a discipline in it."""
    os.system("ip netns add n && ip -n n link add d0 type dummy && ip -n n link set d0 up && "
              "ip netns exec n python3 -c 'from tc import *; "
              "Tc().send(\"add\", \"d0\", \"simnel\", words(\"cake\"))'; ip netns del n")


def main():
    leaks()
    allow(probability=100, interval=499)
    tc, traffic = Tc(), Traffic(draw)
    end, rounds, changes = time.time() + SECONDS, 0, 0
    while time.time() < end and not (rounds % 20 == 0 and complaints()):
        names = [f"e{rounds % 7}{letter}" for letter in "abcd"[: draw.randint(1, 4)]]
        for name in names:
            link("add", name, "numtxqueues", "4", "type", "dummy")
            link("set", name, "up")
            tc.send("replace", name, "simnel", words(draw.choice(WHOLE)))
        traffic.goes_to(names)
        until = min(end, time.time() + draw.uniform(0.5, min(12, SECONDS / 3)))
        while time.time() < until:
            act(tc, draw.choice(names))
            time.sleep(draw.choice([0, 0.01, 0.1, 0.3]))
            changes += 1
        for name in names:
            if draw.random() < 0.5:
                # While packets come.
                link("del", name)
        traffic.goes_to([])
        for name in names:
            if os.path.exists(f"/sys/class/net/{name}"):
                link("del", name)
        if draw.random() < 0.2:
            leave_namespace()
        rounds += 1
    traffic.stop()
    with open("/sys/module/simnel/parameters/taken") as count:
        packets = int(count.read())
    found = complaints() + leaks()
    print(f"seed {SEED}: {packets} packets, {changes} changes, {rounds} times other devices")
    print("\n".join(found) if found else "nothing in the log")
    sys.exit(bool(found))


main()
