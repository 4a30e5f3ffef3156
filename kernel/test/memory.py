"""Memory that fails at every allocation in turn: python3 memory.py.

Inside a guest, with a debug build loaded. For each discipline, it is created, changed and shown with the
first, second, ... large piece of memory refused, until none is refused any more: each time either an error,
and all as before, or success. Where the kernel has failslab, so it does with each small piece that is not
waited for, at creation and change. Elsewhere, whose compilers keep frames small, enough of the stack is left
below each request for memory: the kernel may have to look for it.
"""

import os
import sys

import failslab
from tc import RTM_GETQDISC, TCA_KIND, TCA_OPTIONS, Tc, attributes, complaints, link, words

WHOLE = ["cake", "cake bandwidth 1gbit diffserv8 ack-filter", "fq_codel", "fq_pie savings 15kb",
         "sfq", "sfb", "red limit 100kb avpkt 1000", "drr", "pie", "htb rate 10mbit", "dualpi2",
         "mq cake bandwidth 10mbit", "fq_codel flows 65535", "drr queues 65536",
         "htb default 10" + "".join(f" class 1:{16 + n:x} rate 1mbit ceil 10mbit fq_codel" for n in range(90))]
# Disciplines below others take the most stack.
DEEP = ["tbf rate 1mbit burst 15k limit 30k sfq", "htb default 1 class 1:1 rate 1mbit sfq", "drr class 1:1 sfq",
        "htb default 1 class 1:1 rate 1mbit sfb", "htb default 1 class 1:1 rate 1mbit cake"]
DEEPER = "tbf rate 1mbit burst 15k limit 30k " * 3 + "sfq"
LEFT = 3000  # bytes of stack
FEWEST = 3  # allocations that the kernel itself makes for a discipline
LARGE = 10  # large pieces, of all disciplines together, that were refused
PARAMETERS = "/sys/module/simnel/parameters/"
# Open all the time: to open it would take memory, too.
CONTROL = os.open(PARAMETERS + "refuse", os.O_RDWR)


class Large:
    """Large pieces, which the module asks for."""

    @staticmethod
    def failing(nth):
        os.pwrite(CONTROL, str(nth).encode(), 0)

    @staticmethod
    def still_to_fail():
        return int(os.pread(CONTROL, 20, 0))


def in_turn(memory, attempt):
    """Attempts with every allocation failing in turn; how many there were."""
    nth = 1
    while True:
        memory.failing(nth)
        try:
            error, text = attempt()
        except OSError as failed:
            # The request itself, or the answer, found no memory.
            error, text = failed.errno, failed.strerror
        is_over = memory.still_to_fail() > 0
        memory.failing(0)
        if is_over:
            if error:
                sys.exit(f"an error ({error}: {text}) though no memory failed")
            return nth - 1
        nth += 1
        if nth > 2000:
            sys.exit("endlessly many allocations")


def shown(tc):
    """The settings of m0's root discipline, if it is ours."""
    for message in list(tc.messages(RTM_GETQDISC, 0)):
        told = attributes(message[36:])
        if told[TCA_KIND] == b"simnel\0":
            return told[TCA_OPTIONS]
    return None


def try_all(tc, memory, whole):
    """Allocations at creation, and at a change of the discipline that is there then."""
    tc.send("del", "m0", "simnel")

    def create():
        try:
            return tc.send("add", "m0", "simnel", words(whole))
        finally:
            rest = memory.still_to_fail()
            memory.failing(0)
            if not rest:
                tc.send("del", "m0", "simnel")
            memory.failing(rest)

    made = in_turn(memory, create)
    before = shown(tc)
    if before is None:
        sys.exit(f"{whole[:60]}: its settings are not shown")

    def change():
        error, text = tc.send("change", "m0", "simnel", words(whole))
        nth = memory.still_to_fail()
        memory.failing(0)
        if error and shown(tc) != before:
            sys.exit(f"{whole[:60]}: a change that failed has changed it")
        memory.failing(nth)
        return error, text

    return made, in_turn(memory, change)


def stack_left(tc):
    """Fewest bytes of stack that were left at requests for memory."""
    for whole in DEEP:
        for verb in ("add", "change", "del"):
            error, text = tc.send(verb, "m0", "simnel", None if verb == "del" else words(whole))
            if error:
                sys.exit(f"{verb} {whole}: {text}")
    error, text = tc.send("add", "m0", "simnel", words(DEEPER))
    if not error or "stack" not in text:
        sys.exit(f"{DEEPER}: {error} {text!r}")
    with open(PARAMETERS + "stack_left") as told:
        return int(told.read())


def main():
    failslab.allow()
    tc = Tc()
    link("add", "m0", "numtxqueues", "3", "type", "dummy")
    link("set", "m0", "up")
    refused = 0
    for whole in WHOLE:
        made, changed = try_all(tc, Large, whole)
        before = shown(tc)

        def show():
            if shown(tc) != before:
                sys.exit(f"{whole[:60]}: not shown as before")
            return 0, ""

        told = in_turn(Large, show)
        refused += made + changed + told
        print(f"{whole[:60]}: {made} large pieces at creation, {changed} at a change, {told} to show it")
        if failslab.IS_THERE:
            made, changed = try_all(tc, failslab, whole)
            print(f"{whole[:60]}: {made} allocations at creation, {changed} at a change")
            if made < FEWEST:
                sys.exit("no allocation failed")
    tc.send("del", "m0", "simnel")
    left = stack_left(tc)
    print(f"{left} bytes of stack were left")
    if left < LEFT and not failslab.IS_THERE:
        sys.exit(f"{LEFT} at least")
    if refused < LARGE:
        sys.exit(f"only {refused} large pieces were refused")
    if link("add", "m1", "type", "dummy"):
        sys.exit("no other device can be made")
    found = complaints()
    print("\n".join(found) if found else "nothing in the log")
    sys.exit(bool(found))


main()
