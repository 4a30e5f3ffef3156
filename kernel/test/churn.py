"""Traffic while disciplines come, change and go: python3 churn.py SECONDS [SEED].

Inside a guest, with the module loaded. pktgen sends packets of many flows through the discipline of
a device, while it is changed, replaced, deleted, put below others, and its device and namespace are
removed. Fails if the kernel complains; a debug build of the module compares its books meanwhile.
"""

import os
import random
import sys
import time

import pktgen
from tc import Tc, complaints, link, words

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


def flood(device, flows, size):
    """Starts pktgen on a device through its discipline."""
    orders = ["xmit_mode queue_xmit", "count 0", f"pkt_size {size}", "delay 0",
              "dst_min 10.0.0.1", "dst_max 10.0.0.9", "src_min 10.1.0.1", "src_max 10.1.3.250",
              "flag IPSRC_RND", "flag UDPSRC_RND", "udp_src_min 1", f"udp_src_max {flows}",
              f"tos {draw.choice(['00', '28', 'b8', '02', '01', '03', 'c0'])}", "dst_mac 02:00:00:00:00:02"]
    pktgen.say("kpktgend_0", "rem_device_all", f"add_device {device}")
    pktgen.say(device, *orders)
    return pktgen.start()


def act(tc, device):
    """One thing that an administrator may do."""
    what = draw.random()
    whole = draw.choice(WHOLE)
    if what < 0.45:
        tc.send("replace", device, "simnel", words(whole))
    elif what < 0.75:
        tc.send("change", device, "simnel", words(draw.choice(CHANGES)))
    elif what < 0.83:
        tc.send("del", device, "simnel")
    elif what < 0.88:
        # Below a discipline of Linux's, with a rate so that something is queued.
        os.system(f"tc qdisc replace dev {device} root handle 1: tbf rate 5mbit burst 20kb "
                  "latency 100ms 2>/dev/null")
        tc.send("replace", device, "simnel", words(whole), parent=0x10001, handle=0x20000)
    elif what < 0.93:
        tc.dump()
        os.system(f"tc -s class show dev {device} >/dev/null 2>&1")
    elif what < 0.96:
        link("set", device, draw.choice(["down", "up"]))
    else:
        os.system(f"tc filter add dev {device} parent 2: matchall classid :{draw.randint(1, 99)} "
                  "2>/dev/null")


def leaks():
    """What kmemleak, where it is there, knows of memory that the module forgot."""
    file = "/sys/kernel/debug/kmemleak"
    if not os.path.exists(file):
        return []
    # Twice: what is new counts only once it has some age.
    os.system(f"echo scan > {file}; sleep 6; echo scan > {file}")
    return os.popen(f"grep -A12 simnel {file}").read().splitlines()


def main():
    tc = Tc()
    end, rounds, packets = time.time() + SECONDS, 0, 0
    while time.time() < end:
        name = f"e{rounds % 7}"
        link("add", name, "numtxqueues", "4", "type", "dummy")
        link("set", name, "up")
        tc.send("replace", name, "simnel", words(draw.choice(WHOLE)))
        child = flood(name, draw.choice([1, 10, 1000, 60000]), draw.choice([60, 300, 1400]))
        until = min(end, time.time() + draw.uniform(0.2, 3))
        while time.time() < until:
            act(tc, name)
            time.sleep(draw.choice([0, 0, 0.01, 0.05]))
        packets += pktgen.sent(name)
        if draw.random() < 0.3:
            link("del", name)
        pktgen.stop(child)
        link("del", name)
        # A namespace that ends with a discipline in it.
        if draw.random() < 0.3:
            os.system("ip netns add n && ip -n n link add d0 type dummy && ip -n n link set d0 up && "
                      "ip netns exec n python3 -c 'from tc import *; "
                      "Tc().send(\"add\", \"d0\", \"simnel\", words(\"cake\"))'; ip netns del n")
        rounds += 1
    print(f"seed {SEED}: {rounds} devices, {packets} packets")
    found = complaints() + leaks()
    print("\n".join(found) if found else "nothing in the log")
    sys.exit(bool(found))


main()
