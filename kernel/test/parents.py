"""What a parent counts: python3 parents.py. Inside a guest, with the module loaded.

Bursts stand in a cake below a tbf, and the cake drops some of them as others leave. Once all are gone, or the cake
is, the parent has none.
"""

import os
import re
import sys
import time

from packets import burst
from tc import Tc, complaints, words

ROUNDS = 10


def queued(device):
    """Backlogs of the disciplines, the root's first, and packets that its child has dropped."""
    told = os.popen(f"tc -s qdisc show dev {device}").read()
    return re.findall(r"backlog (\S+ \S+)p", told), int(re.findall(r"dropped (\d+)", told)[-1])


def main():
    tc, wrong, dropped, refused = Tc(), 0, 0, 0
    os.system("ip link add p0 type dummy; ip link set p0 up")
    for extra in range(ROUNDS):
        os.system("tc qdisc replace dev p0 root handle 1: tbf rate 4mbit burst 2000 limit 400k")
        cake = words("cake unlimited besteffort rtt 1ms")
        error, told = tc.send("replace", "p0", "simnel", cake, parent=0x10001, handle=0x20000)
        refused += burst("p0", 60 + extra)
        time.sleep(0.4)
        backlogs, drops = queued("p0")
        dropped += drops
        if error or backlogs != ["0b 0", "0b 0"]:
            print(f"{60 + extra} packets: {told!r} {backlogs} are left")
            wrong += 1
        os.system("tc qdisc del dev p0 root; "
                  "tc qdisc replace dev p0 root handle 1: tbf rate 1mbit burst 2000 limit 400k")
        tc.send("replace", "p0", "simnel", cake, parent=0x10001, handle=0x20000)
        refused += burst("p0", 60 + extra)
        time.sleep(0.05)
        os.system("tc qdisc replace dev p0 parent 1:1 handle 3: pfifo")
        backlogs, _ = queued("p0")
        if backlogs[-1] != "0b 0" or backlogs[0] not in ("0b 0", "1042b 1"):
            print(f"{60 + extra} packets, another child: {backlogs} are left")
            wrong += 1
        os.system("tc qdisc del dev p0 root")
    if refused:
        print(f"{refused} packets were refused")
    found = complaints()
    print("\n".join(found) if found else f"{ROUNDS} bursts, {dropped} dropped, nothing in the log")
    sys.exit(bool(found) or bool(wrong) or not dropped or bool(refused))


main()
