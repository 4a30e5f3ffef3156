"""Queues that filters and priorities choose: python3 classes.py. Inside a guest, with the module loaded.

Packets of sixty flows stand below a slow tbf, in a discipline with the handle 2:. A class of that names one of its
queues, by a filter or as a packet's priority; what a filter sends nowhere is dropped (Linux's fq_codel, fq_pie,
sfq). Of sfb it stands for a flow.
"""

import os
import re
import socket
import struct
import sys

from tc import Tc, complaints, words

FLOWS, PACKETS = 60, 100
ALL, NONE, FEW = range(PACKETS - 3, PACKETS + 1), range(1), range(1, 5)
MANY, ONE = range(PACKETS // 2, PACKETS + 1), range(20, 26)
# Words, the filter's class, the packets' priority; packets that stand there, without those that tbf has taken or
# sent, and queues that have some, if they are known.
CASES = [
    ("fq_codel flows 16", None, 0, ALL, None),
    ("fq_codel flows 16", "2:5", 0, ALL, [5]),
    ("fq_codel flows 16", "7:5", 0, ALL, [5]),
    ("fq_codel flows 16", "2:0", 0, NONE, []),
    ("fq_codel flows 16", "2:11", 0, NONE, []),
    ("fq_codel flows 16", None, 0x20010, ALL, [16]),
    ("fq_codel flows 16", None, 0x20011, ALL, None),
    ("fq_codel flows 16", None, 0x30010, ALL, None),
    # A priority comes before the filters.
    ("fq_codel flows 16", "2:0", 0x20003, ALL, [3]),
    ("fq_pie flows 16", "2:5", 0, ALL, [5]),
    ("fq_pie flows 16", "2:11", 0, NONE, []),
    ("fq_pie flows 16", None, 0x20010, ALL, [16]),
    # A queue has no more than two.
    ("sfq depth 2 divisor 256", None, 0, MANY, None),
    ("sfq depth 2 divisor 256", "2:64", 0, FEW, [0x64]),
    ("sfq depth 2 divisor 256", "2:101", 0, NONE, []),
    ("sfq depth 2 divisor 256", None, 0x20064, FEW, [0x64]),
    # All are one flow, which may have 25.
    ("sfb", None, 0, ALL, []),
    ("sfb", "2:5", 0, ONE, []),
    ("sfb", "7:5", 0, ONE, []),
]


def send(device, priority):
    """Sends packets of FLOWS flows in turn."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as stack:
        stack.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        for count in range(PACKETS):
            network = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 528, 0, 0, 64, 17, 0, bytes([10, 1, 0, 1]), bytes([10, 0, 0, 1]))
            transport = struct.pack("!HHHH", 1 + count % FLOWS, 9, 508, 0)
            try:
                stack.sendto(network + transport + bytes(500), (device, 0x800, 0, 0, bytes([2, 0, 0, 0, 0, 2])))
            except OSError:
                pass  # dropped


def queued():
    """Packets that stand in 2:, and the numbers of its queues that have some."""
    told = os.popen("tc -s qdisc show dev c0").read()
    packets = int(re.search(r"qdisc simnel 2:.*?backlog \S+ (\d+)p", told, re.S).group(1))
    told = os.popen("tc -s class show dev c0").read()
    found = re.findall(r"class simnel 2:(\w+).*?backlog \S+ (\d+)p", told, re.S)
    return packets, [int(number, 16) for number, count in found if int(count)]


def main():
    tc, wrong = Tc(), 0
    for text, chosen, priority, packets, queues in CASES:
        os.system("ip link add c0 type dummy; ip link set c0 up; tc qdisc replace dev c0 root handle 1: "
                  "tbf rate 8kbit burst 600 limit 1mb")
        error, told = tc.send("replace", "c0", "simnel", words(text), parent=0x10001, handle=0x20000)
        if chosen:
            os.system(f"tc filter add dev c0 parent 2: protocol all matchall classid {chosen}")
        send("c0", priority)
        found, those = queued()
        is_chosen = those == queues if queues is not None else len(those) > 8
        if error or found not in packets or not is_chosen:
            print(f"{text}, filter {chosen}, priority {priority:x}: {told!r} {found} in {those}, not {packets} in {queues}")
            wrong += 1
        os.system("ip link del c0")
    found = complaints()
    print("\n".join(found) if found else f"{len(CASES)} choices, nothing in the log")
    sys.exit(bool(found) or bool(wrong))


main()
