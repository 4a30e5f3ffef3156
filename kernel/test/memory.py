"""Memory that fails at every allocation in turn: python3 memory.py.

Inside a debug guest (failslab), with the module loaded. For each discipline, creating and changing
it is tried with the first, second, ... allocation failing, until none fails any more: each time
either an error, and all as before, or success.
"""

import sys

from failslab import allow, failing, still_to_fail
from tc import Tc, complaints, link, words

WHOLE = ["cake", "cake bandwidth 1gbit diffserv8 ack-filter", "fq_codel", "fq_pie savings 15kb",
         "sfq", "sfb", "red limit 100kb avpkt 1000", "drr", "pie", "htb rate 10mbit", "dualpi2",
         "mq cake bandwidth 10mbit"]
FEWEST = 3  # allocations that the kernel itself makes for a discipline


def in_turn(attempt):
    """Attempts with every allocation failing in turn; how many there were."""
    nth = 1
    while True:
        failing(nth)
        try:
            error, text = attempt()
        except OSError as failed:
            # The request itself, or the answer, found no memory.
            error, text = failed.errno, failed.strerror
        is_over = still_to_fail() > 0
        failing(0)
        if is_over:
            if error:
                sys.exit(f"an error ({error}: {text}) though no memory failed")
            return nth - 1
        nth += 1
        if nth > 2000:
            sys.exit("endlessly many allocations")


def main():
    allow()
    tc = Tc()
    link("add", "m0", "numtxqueues", "3", "type", "dummy")
    link("set", "m0", "up")
    for whole in WHOLE:
        tc.send("del", "m0", "simnel")

        def create():
            try:
                return tc.send("add", "m0", "simnel", words(whole))
            finally:
                rest = still_to_fail()
                failing(0)
                if not rest:
                    tc.send("del", "m0", "simnel")
                failing(rest)

        made = in_turn(create)
        changed = in_turn(lambda: tc.send("change", "m0", "simnel", words(whole)))
        print(f"{whole}: {made} allocations at creation, {changed} at a change")
        if made < FEWEST:
            sys.exit("no allocation failed: is failslab there?")
    tc.send("del", "m0", "simnel")
    found = complaints()
    print("\n".join(found) if found else "nothing in the log")
    sys.exit(bool(found))


main()
