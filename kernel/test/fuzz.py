"""Requests that make no sense: python3 fuzz.py MESSAGES [SEED] [KIND...].

Inside a guest, with the module loaded, under our own name and those of Linux that it answers to.
Each answer must be success or an error with a text; the kernel must not complain.
"""

import random
import socket
import struct
import sys

from tc import NESTED, Tc, attribute, complaints, link, words

MESSAGES = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
KINDS = ["simnel"] + sys.argv[3:]
draw = random.Random(SEED)
TEXTS = ["cake bandwidth 10mbit", "fq_codel limit 10", "pie", "htb rate 1mbit", "drr", "sfq",
         "red limit 1kb avpkt 1", "tbf rate 1mbit burst 1", "limit 18446744073709551616"]


def payload():
    what = draw.random()
    if what < 0.5:
        return struct.pack("I", draw.choice([0, 1, 2, 7, 1000, 1 << 20, 0xFFFFFFFF,
                                             draw.getrandbits(32)]))
    if what < 0.6:
        return struct.pack("Q", draw.getrandbits(64))
    if what < 0.7:
        return attribute(draw.randint(0, 40), draw.randbytes(draw.randint(0, 20)))
    return draw.randbytes(draw.choice([0, 1, 2, 3, 5, 16, 20, 52, 88, 256, 300]))


def options(kind):
    """Bytes that are perhaps options."""
    if kind == "simnel":
        text = list(draw.choice(TEXTS))
        for _ in range(draw.randint(0, 4)):
            text.insert(draw.randint(0, len(text)), chr(draw.randint(1, 255)))
        made = words("".join(text))
    else:
        made = b"".join(attribute(draw.randint(0, 24) | draw.choice([0, 0, NESTED]), payload())
                        for _ in range(draw.randint(0, 8)))
    if draw.random() < 0.2:
        made = made[: draw.randint(0, len(made))]
    if draw.random() < 0.2 and made:
        at = draw.randrange(len(made))
        made = made[:at] + draw.randbytes(1) + made[at + 1 :]
    return made


def main():
    tc = Tc()
    link("add", "f0", "type", "dummy")
    link("set", "f0", "up")
    device = socket.if_nametoindex("f0")
    taken = refused = silent = 0
    for count in range(MESSAGES):
        kind = draw.choice(KINDS)
        verb = draw.choices(["replace", "change", "add", "del"], [4, 4, 1, 0.3])[0]
        flag = draw.choice([NESTED, NESTED, 0])
        error, text = tc.send(verb, device, kind, options(kind), flag=flag)
        taken += error == 0
        refused += error != 0
        silent += error != 0 and not text
        if count % 1000 == 0:
            tc.dump()
    tc.send("del", "f0", "simnel")
    link("del", "f0")
    print(f"seed {SEED}: {taken} taken, {refused} refused, {silent} of these without a text")
    found = complaints()
    print("\n".join(found) if found else "nothing in the log")
    sys.exit(bool(found) or taken == 0 or refused == 0 or silent > 0)


main()
