"""The module loaded and unloaded: python3 loads.py MODULE TIMES [ALIASES].

Inside a guest. Each time it takes up its names, makes a discipline, shows and removes it.
"""

import os
import sys

from tc import Tc, complaints, leaks, link, words

MODULE, TIMES = sys.argv[1], int(sys.argv[2])
ALIASES = sys.argv[3] if len(sys.argv) > 3 else ""
WHOLE = ["cake bandwidth 10mbit", "fq_codel", "mq cake bandwidth 10mbit", "htb rate 10mbit", "sfq"]


def run(*command):
    """Runs a program, which must not fail."""
    if os.spawnlp(os.P_WAIT, command[0], *command):
        sys.exit(f"{' '.join(command)}: failed")


def main():
    leaks()
    link("add", "l0", "numtxqueues", "4", "type", "dummy")
    link("set", "l0", "up")
    tc = Tc()
    for count in range(TIMES):
        run("insmod", MODULE, f"aliases={ALIASES}")
        error, text = tc.send("add", "l0", "simnel", words(WHOLE[count % len(WHOLE)]))
        if error:
            sys.exit(f"load {count + 1}: {error} {text}")
        tc.dump()
        tc.send("del", "l0", "simnel")
        run("rmmod", "simnel")
        if complaints():
            break
    found = complaints() + leaks()
    print(f"loaded and unloaded {count + 1} times")
    print("\n".join(found) if found else "nothing in the log")
    sys.exit(bool(found))


main()
