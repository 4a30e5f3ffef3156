"""What Linux counts as `overlimits`: python3 counters.py. Inside a guest, with the module loaded.

A burst goes through Linux's own discipline, and the same burst through ours: a shaper counts how often a packet
had to wait, an AQM marks and drops. What was counted stays where a change puts another discipline in place. Below a
shaper the packet that it has looked at counts against the limit.
"""

import os
import re
import sys
import time

from packets import burst
from tc import ROOT, Tc, complaints, fates, words

PACKETS = 300
# The shaper above, if the device's own speed is not to be had; Linux's words, and ours where they are others.
ABOVE = "tbf rate 1mbit burst 5kb limit 1mb"
CASES = [
    (None, "cake bandwidth 1mbit besteffort raw", None),
    (None, "tbf rate 1mbit burst 5kb limit 1mb", None),
    (None, "htb default 1", "htb default 1 class 1:1 rate 1mbit ceil 1mbit burst 5kb cburst 5kb"),
    (ABOVE, "red limit 400kb min 5kb max 10kb avpkt 500 burst 12 probability 1 bandwidth 1mbit", None),
    (ABOVE, "sfb limit 20", None),
    (ABOVE, "sfq depth 100 limit 100 redflowlimit 60000 min 5000 max 10000 avpkt 500 burst 12 probability 1", None),
]
LIMITED = [f"{kind} limit 10" for kind in ("codel", "fq_codel", "fq_pie", "pie", "sfb", "sfq")]
# Hardly anything leaves.
CLOSED = "tbf rate 400bit burst 2000 limit 1mb"
CHANGES = ["cake bandwidth 1mbit besteffort", "fq_codel", ABOVE]
WITHIN = 0.1  # of Linux's number: random decisions are others', and timers come when they come


def told():
    """What `tc` says of the discipline 2:."""
    return os.popen("tc -s qdisc show dev o0").read().partition(" 2: ")[2]


def counted():
    """`overlimits` of the discipline 2:."""
    return int(re.search(r"overlimits (\d+)", told()).group(1))


def left(above, linux=None, ours=None):
    """Packets sent, dropped and queued of either after the burst."""
    stand(above, linux, ours)
    burst("o0", PACKETS)
    found = fates(told())
    os.system("ip link del o0")
    return found


def stand(above, linux=None, ours=None):
    """Makes a device with the discipline 2: of either's words."""
    os.system("ip link add o0 type dummy; ip link set o0 up")
    if above:
        os.system(f"tc qdisc add dev o0 root handle 1: {above}")
    if ours:
        error, text = Tc().send("add", "o0", "simnel", words(ours), handle=0x20000, parent=0x10001 if above else ROOT)
        if error:
            sys.exit(f"{ours}: {text}")
    else:
        os.system(f"tc qdisc add dev o0 {'parent 1:1' if above else 'root'} handle 2: {linux}")
        if linux.startswith("htb"):
            os.system("tc class add dev o0 parent 2: classid 2:1 htb rate 1mbit ceil 1mbit burst 5kb cburst 5kb")


def overlimits(above, linux=None, ours=None):
    """What the discipline of either's words has counted after the burst."""
    stand(above, linux, ours)
    burst("o0", PACKETS)
    time.sleep(1)
    found = counted()
    os.system("ip link del o0")
    return found


def changed():
    """The same of ours after a burst, after a change to each of CHANGES, and after another burst."""
    os.system("ip link add o0 type dummy; ip link set o0 up")
    tc = Tc()
    tc.send("add", "o0", "simnel", words(CHANGES[0]), handle=0x20000)
    burst("o0", PACKETS)
    time.sleep(1)
    found = [counted()]
    for change in CHANGES[1:]:
        error, text = tc.send("change", "o0", "simnel", words(change), handle=0x20000)
        if error:
            sys.exit(f"{change}: {text}")
        found.append(counted())
    burst("o0", PACKETS)
    time.sleep(1)
    found.append(counted())
    os.system("ip link del o0")
    return found


def main():
    wrong = 0
    for above, linux, ours in CASES:
        wanted, found = overlimits(above, linux), overlimits(above, ours=ours or linux)
        print(f"{linux}: {found}, Linux {wanted}")
        wrong += not wanted or abs(found - wanted) > max(2, WITHIN * wanted)
    for text in LIMITED:
        wanted, found = left(CLOSED, text), left(CLOSED, ours=text)
        print(f"{text}: {found}, Linux {wanted}")
        wrong += found != wanted
    first, *later, last = changed()
    print(f"{', '.join(CHANGES)}: {[first, *later, last]}")
    # Packets that wait leave until the change.
    wrong += not first or any(count < first for count in later) or later != sorted(later) or last <= later[-1]
    found = complaints()
    print("\n".join(found) if found else f"{len(CASES + LIMITED)} bursts, nothing in the log")
    sys.exit(bool(found) or bool(wrong))


main()
