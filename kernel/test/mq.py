"""Parallel queues: python3 mq.py SECONDS. Inside a guest that counts time by instructions, with the module
loaded.

pktgen floods a device with five transmit queues: one flow of one host in the first, many of another
host in three others. What the queues sent must be the rate that is set, never more, and as much of the
first host as of the second. Settings are changed, shown and refused meanwhile.
"""

import os
import sys
import time

import pktgen
from tc import Tc, complaints, link, sent, words

SECONDS = float(sys.argv[1])
# The stack sends what came by receive queue n through transmit queue n - 1: so pktgen cannot say the last.
QUEUES, FLOODED, MTU = 5, 4, 1000
# Each begins with a quantum that nobody pays for: those of all are over in some 50 ms.
FLOWS = 20
# What the scheme states beyond the rate: time that is caught up with (LATE and AHEAD, or two packets),
# a lot and a packet a queue.
LATE, LOT = 520e-6, 5e-6
# Part of a while in which pktgen must have had the processor, and how often that is tried.
FLOODS, TRIES = 0.98, 10
wrong = []


def check(ok, *text):
    """Notes what is not as it should be."""
    if not ok:
        wrong.append(" ".join(map(str, text)))


def flood(device):
    """Starts pktgen, on all processors: queue 0 has one flow of 10.0.0.1, each other one FLOWS of 10.0.0.2."""
    threads = [f"kpktgend_{cpu}" for cpu in range(os.cpu_count())]
    for thread in threads:
        pktgen.say(thread, "rem_device_all")
    names = [f"{device}@{queue}" for queue in range(FLOODED)]
    for queue, name in enumerate(names):
        host = min(queue, 1) + 1
        pktgen.add(threads[queue % len(threads)], name, queue + 1, MTU, f"10.0.0.{host}", f"10.1.0.{host}",
                   1 if queue == 0 else FLOWS)
    return pktgen.start(*names)


def executed(pid):
    """Seconds for which a thread of the kernel's has had the processor."""
    with open(f"/proc/{pid}/schedstat") as stat:
        return int(stat.read().split()[0]) / 1e9


def measure(tc, device, rate, seconds):
    """Compares what is sent in a while with `rate` in bits a second.

    What pktgen sends is dropped but for a few packets a queue: while others have the processor, a queue
    soon has nothing to send. A while in which that has happened says nothing, and another one follows.
    """
    generator = pktgen.threads()[0]
    time.sleep(0.1)
    for _ in range(TRIES):
        ran, before, (earliest, first, start) = executed(generator), tc.classes(device), sent(device)
        time.sleep(seconds)
        (end, last, latest), after = sent(device), tc.classes(device)
        ran = (executed(generator) - ran) / (latest - earliest)
        if ran >= FLOODS:
            break
        print(f"{rate / 1e6:g} Mbit/s: pktgen had the processor for {100 * ran:.1f} % of the time: once more")
    check(ran >= FLOODS, f"pktgen had the processor for {100 * ran:.1f} % of the time")
    check(len(before) == len(after) == QUEUES, "classes:", before, after)
    total, packet = last - first, MTU * 8 / rate
    most = rate / 8 * (latest - earliest + max(LATE, 2 * packet) + QUEUES * LOT) + QUEUES * MTU
    least = rate / 8 * (end - start)
    queues = [late - early for early, late in zip(before, after)]
    share = queues[0] / max(sum(queues), 1)
    print(f"{rate / 1e6:g} Mbit/s: {total * 8 / (end - start) / 1e6:.2f} sent, at most"
          f" {most * 8 / (end - start) / 1e6:.2f}; the host with one flow has {100 * share:.1f} %"
          f" (pktgen the processor for {100 * ran:.1f} %)")
    check(total <= most, f"{total} bytes at {rate}, {most:.0f} at most")
    check(total >= 0.95 * least, f"{total} bytes at {rate}, {least:.0f} expected")
    check(abs(share - 0.5) <= 0.025, f"the host with one flow has {share:.3f}, not a half: {queues}")


def main():
    tc = Tc()

    def say(verb, text, number=0, part="", device="m0", **more):
        error, told = tc.send(verb, device, "simnel", None if text is None else words(text), **more)
        check(error == number and part in told, f"{verb} {text}: {error} {told!r}, not {number} {part!r}")

    link("add", "m0", "numtxqueues", str(QUEUES), "type", "dummy")
    link("set", "m0", "up")
    say("add", "mq cake", 22, "`bandwidth`")
    say("add", "mq fq_codel", 22, "`fq_codel` (word 2)")
    say("add", "mq cake bandwidth 10mbit savings 15kb", 22, "`savings`")
    say("add", "mq cake bandwidth 10mbit diffserv9", 22, "`diffserv9` (word 5)")
    say("add", "cake")
    say("replace", "mq cake bandwidth 10mbit", 22, "`mq` (word 1)")
    say("del", None)
    say("add", "mq cake bandwidth 20mbit", handle=0x10000)
    child = flood("m0")
    measure(tc, "m0", 20e6, SECONDS)
    say("change", "bandwidth 50mbit")
    measure(tc, "m0", 50e6, SECONDS)
    for text, number, part in [
        ("savings 15kb", 22, "`savings`"), ("diffserv4", 0, ""), ("bandwith 1mbit", 22, "did you mean"), ("unlimited", 22, "`bandwidth`"),
        ("fq_codel", 22, "`fq_codel` (word 1)"), ("queues 64", 0, ""), ("ingress", 0, ""), ("dual-srchost egress", 0, ""),
        ("mq cake bandwidth 30mbit", 0, ""),
    ]:
        say("change", text, number, part)
    measure(tc, "m0", 30e6, SECONDS)
    for what, count in ("qdisc", QUEUES + 1), ("-s class", QUEUES):
        text = os.popen(f"tc {what} show dev m0").read()
        check(text.count("simnel") == count, text)
    # A queue has no settings of its own, and nobody hangs anything below.
    say("add", "mq cake bandwidth 1mbit", 95, "root", parent=0x10001)
    pktgen.stop(child)
    link("set", "m0", "down")
    link("set", "m0", "up")
    child = flood("m0")
    measure(tc, "m0", 30e6, SECONDS)
    pktgen.stop(child)
    say("del", None)
    say("add", "mq cake bandwidth 1gbit")
    link("del", "m0")
    found = wrong + complaints()
    print("\n".join(found) if found else "mq: nothing in the log")
    sys.exit(bool(found))


main()
