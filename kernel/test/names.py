"""What tc's users do: python3 names.py. Inside a guest, with the module loaded."""

import socket
import struct
import sys

from tc import RTM_GETQDISC, RTM_NEWQDISC, TCA_KIND, Tc, attributes, complaints, link, words



def tree(classes):
    """The words of a tree of so many classes."""
    return "htb default 10" + "".join(
        f" class 1:{16 + n:x} rate 1mbit ceil 10mbit fq_codel" for n in range(classes))


CASES = [
    # verb, words, error number, part of the text
    ("add", "cake bandwidth 10mbit diffserv4 nat ack-filter", 0, ""),
    ("change", "bandwidth 20mbit", 0, ""),
    ("change", "bandwith 20mbit", 22, "did you mean"),
    ("change", "cake bandwidth", 22, "bandwidth"),
    ("replace", "fq_codel limit 100", 0, ""),
    ("change", "limit 1000", 0, ""),
    ("change", "flows none", 22, "flows"),
    ("replace", "fq_pie savings 15kb", 0, ""),
    ("replace", "htb rate 10mbit", 0, ""),
    ("replace", "caek", 22, "`caek`"),
    ("replace", "cake queues 32 host-load active host-prefix 64 host-guard", 0, ""),
    ("replace", tree(90), 0, ""),
    ("change", tree(120), 22, "bytes of words"),
    ("del", None, 0, ""),
    ("add", tree(120), 22, "bytes of words"),
    ("del", None, 22, ""),
    ("add", "", 0, ""),
    ("del", None, 0, ""),
]
# Each has more to tell than the one before.
NOTIFIED = ["fq_codel", "cake bandwidth 10mbit", "cake bandwidth 10mbit diffserv4",
            "cake bandwidth 10mbit diffserv8 nat ack-filter overhead 18 mpu 64"]


def news(listener):
    """Kinds of messages that come, and of the disciplines that they tell of."""
    while True:
        try:
            part = listener.recv(65536)
        except socket.timeout:
            return
        while part:
            length, kind = struct.unpack("IH", part[:6])
            yield kind, attributes(part[36:length]).get(TCA_KIND)
            part = part[(length + 3) & ~3 :]


def unheard(tc):
    """Settings of which the kernel tells nobody who listens."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as listener:
        listener.bind((0, 1 << 3))
        listener.settimeout(0.2)
        for text in NOTIFIED:
            tc.send("replace", "n0", "simnel", words(text))
            if (RTM_NEWQDISC, b"simnel\0") not in list(news(listener)):
                yield text
            tc.send("del", "n0", "simnel")
            list(news(listener))


def is_shown(tc):
    """True if our discipline is among all that the kernel shows."""
    shown = [attributes(message[36:]).get(TCA_KIND) for message in tc.messages(RTM_GETQDISC, 0)]
    return b"simnel\0" in shown


def main():
    tc = Tc()
    link("add", "n0", "type", "dummy")
    link("set", "n0", "up")
    wrong, is_there = 0, False
    for verb, text, number, part in CASES:
        error, told = tc.send(verb, "n0", "simnel", None if text is None else words(text))
        if error != number or part not in told:
            print(f"{verb} {text}: {error} {told!r}, not {number} and {part!r}")
            wrong += 1
        is_there = is_there if error else verb != "del"
        if is_shown(tc) != is_there:
            print(f"{verb} {text}: then shown: {not is_there}")
            wrong += 1
    for text in unheard(tc):
        print(f"{text}: nobody hears of it")
        wrong += 1
    found = complaints()
    print("\n".join(found) if found else f"{len(CASES)} requests, nothing in the log")
    sys.exit(bool(found) or bool(wrong))


main()
