"""Several processors at once: python3 processors.py SECONDS. Inside a guest with two processors or more, with the
module's debug build loaded.

pktgen sends from each processor through one device, while the settings of its discipline change and are shown. A
shaper may never send more than its rate, however the processors meet; what arrived must have left or been
dropped at the end; and the kernel must not complain.
"""

import os
import sys
import time

import pktgen
from tc import Tc, complaints, fates, link, sent, words

SECONDS = float(sys.argv[1])
PROCESSORS, MTU, FLOWS = os.cpu_count(), 1000, 20
# Rates in bits a second of those that shape; 0: they do not.
WHOLE = {
    "cake": 0, "cake bandwidth 40mbit diffserv4": 40e6, "cake bandwidth 400mbit besteffort ack-filter": 400e6,
    "fq_codel": 0, "fq_pie": 0, "pie": 0, "codel": 0, "cobalt": 0, "blue": 0, "red limit 100kb avpkt 1000": 0,
    "sfq": 0, "sfb": 0, "pfifo limit 7": 0, "drr": 0, "dualpi2": 0, "htb default 1 class 1:1 rate 30mbit": 30e6,
    "tbf rate 30mbit burst 10kb latency 20ms": 30e6, "mq cake bandwidth 40mbit": 40e6,
    "mq cake bandwidth 400mbit diffserv4": 400e6,
}
# What may be sent beyond a rate: bursts of tbf and htb, what parallel queues catch up with (mq.py), a packet a queue.
BURST, LATE = 20_000, 600e-6
PATIENCE = 20  # seconds until all has left
CHANGES = ["limit 500", "triple-isolate", "ecn", "flows", "memlimit 50kb", "nonsense"]
# Newer kernels drop some packets before they come to a discipline where another processor is at it, Linux's own as well.
COUNTS_ALL = tuple(map(int, os.uname().release.split(".")[:2])) < (6, 19)
IPV6 = "/proc/sys/net/ipv6/conf/s0/disable_ipv6"
wrong = []


def generators(device):
    """pktgen's devices, one a processor and transmit queue."""
    names = [f"{device}@{number}" for number in range(PROCESSORS)]
    for number, name in enumerate(names):
        thread = f"kpktgend_{number}"
        pktgen.say(thread, "rem_device_all")
        pktgen.add(thread, name, number, MTU, f"10.0.0.{number + 1}", "10.1.0.1", FLOWS)
    return names


def told(device):
    """Packets that have left the device's discipline, that were dropped, and that are queued."""
    return fates(os.popen(f"tc -s qdisc show dev {device} root").read())


def run(tc, device, text, rate):
    """Sends packets through one discipline from all processors, and looks at what became of them."""
    error, answer = tc.send("add", device, "simnel", words(text))
    if error:
        wrong.append(f"{text}: {error} {answer}")
        return
    names = generators(device)
    child, begin, changes = pktgen.start(*names), time.monotonic(), 0
    start, before, _ = sent(device)
    while time.monotonic() < begin + SECONDS:
        tc.send("change", device, "simnel", words(CHANGES[changes % len(CHANGES)]))
        tc.dump()
        changes += 1
        time.sleep(0.02)
    _, after, end = sent(device)
    pktgen.stop(child)
    most = rate / 8 * (end - start + LATE) + BURST + PROCESSORS * MTU
    if rate and after - before > most:
        wrong.append(f"{text}: {after - before} bytes in {end - start:.3f} s, at most {most:.0f}")
    given = sum(map(pktgen.arrived, names))
    left, dropped, queued = told(device)
    # While packets leave, what is told of them is not of one moment.
    while queued and time.monotonic() < end + PATIENCE:
        time.sleep(0.05)
        left, dropped, queued = told(device)
    if queued or given < left + dropped or given > left + dropped and COUNTS_ALL:
        wrong.append(f"{text}: {given} packets came, {left} left, {dropped} were dropped, {queued} are queued")
    print(f"{text}: {given} packets, {changes} changes, {(after - before) * 8 / (end - start) / 1e6:.1f} Mbit/s")
    tc.send("del", device, "simnel")


def main():
    tc = Tc()
    link("add", "s0", "numtxqueues", str(PROCESSORS), "type", "dummy")
    if os.path.exists(IPV6):
        # No packets of the stack's own.
        with open(IPV6, "w") as switch:
            switch.write("1")
    link("set", "s0", "up")
    for text, rate in WHOLE.items():
        run(tc, "s0", text, rate)
    link("del", "s0")
    found = wrong + complaints() + (["there is one processor only"] if PROCESSORS < 2 else [])
    print("\n".join(found) if found else "processors: nothing in the log")
    sys.exit(bool(found))


main()
