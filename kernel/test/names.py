"""What tc's users do: python3 names.py. Inside a guest, with the module loaded."""

import sys

from tc import Tc, complaints, link, words

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
    ("del", None, 0, ""),
    ("del", None, 22, ""),
    ("add", "", 0, ""),
    ("del", None, 0, ""),
]


def main():
    tc = Tc()
    link("add", "n0", "type", "dummy")
    link("set", "n0", "up")
    wrong = 0
    for verb, text, number, part in CASES:
        error, told = tc.send(verb, "n0", "simnel", None if text is None else words(text))
        if error != number or part not in told:
            print(f"{verb} {text}: {error} {told!r}, not {number} and {part!r}")
            wrong += 1
        tc.dump()
    found = complaints()
    print("\n".join(found) if found else f"{len(CASES)} requests, nothing in the log")
    sys.exit(bool(found) or bool(wrong))


main()
