"""Plans of recordings, replayed through the module: python3 replay.py PLANS DECIDED.

Inside a guest, with the module of kernel/test/replay loaded. Of each PLANS/GROUP/NAME.plan the
decisions go to DECIDED/GROUP/NAME.out. Fails if the kernel complains.
"""

import os
import sys

from tc import Tc, complaints, link, words

PLANS, DECIDED = sys.argv[1:]
# The handle that the recorded classes have in their upper half.
HANDLE = 0x80010000
DRIVER = "/proc/simnel_replay"


def decide(tc, plan):
    """What the module decides; settings are the plan's first line."""
    settings, _, packets = plan.partition(b"\n")
    with open(DRIVER, "wb") as driver:
        driver.write(packets)
    error, text = tc.send("add", "d0", "simnel", words(settings.decode()), handle=HANDLE)
    if error:
        return b"# failed the kernel refuses it: " + text.encode() + b"\n"
    with open(DRIVER, "rb") as driver:
        decided = driver.read()
    tc.send("del", "d0", "simnel", handle=HANDLE)
    return decided


def main():
    tc = Tc()
    # It stays down: nobody else's packets enter it.
    link("add", "d0", "type", "dummy")
    for group in sorted(os.listdir(PLANS)):
        os.makedirs(os.path.join(DECIDED, group))
        for name in sorted(os.listdir(os.path.join(PLANS, group))):
            with open(os.path.join(PLANS, group, name), "rb") as file:
                decided = decide(tc, file.read())
            with open(os.path.join(DECIDED, group, name[: -len("plan")] + "out"), "wb") as file:
                file.write(decided)
    found = complaints()
    for line in found:
        print(line)
    sys.exit(bool(found))


main()
