#!/usr/bin/env python3
"""Draws settings and traffic, asks Linux's code and ours, and keeps what differs as recordings.

Used by conformance/fuzz-linux.sh, which makes the oracle (Linux's disciplines as a program). What is
drawn stands in fuzz_linux/. `--check DIR` asks the oracle about recordings that are there, instead.
"""
import argparse
import collections
import fcntl
import gzip
import json
import pathlib
import subprocess
import sys
import time

from fuzz_linux.attributes import configuration
from fuzz_linux.cases import draw_case
from fuzz_linux.draw import KINDS


def ask(oracle, case, arrivals):
    """Linux's answer: lines, or None and why not."""
    result = subprocess.run([oracle], input=configuration(case) + arrivals, text=True,
                            capture_output=True, check=False)
    return (result.stdout, "") if result.returncode == 0 else (None, result.stderr.strip())


# Comparison: recordings in a directory, replayed by `simnel conformance golden`.

def arrivals_text(lines, end):
    numbered, number = [], 0
    for line in lines:
        columns = line.split(",")
        if columns[1] == "enq+":
            columns[2] = str(number)
            number += 1
        numbered.append(",".join(columns))
    return "\n".join([*numbered, f"{end},run"]) + "\n"


def packets_of(lines):
    return sum(",enq+," in line for line in lines)


def record(directory, case, lines, end, answer):
    group = directory / case["group"]
    group.mkdir(parents=True, exist_ok=True)
    path = group / case["name"]
    arrivals = arrivals_text(lines, end)
    for suffix, text in ((".csv.gz", arrivals), (".out.gz", answer)):
        (path.parent / (path.name + suffix)).write_bytes(gzip.compress(text.encode(), mtime=0))
    whole = {**case, "packets": packets_of(lines)}
    (path.parent / (path.name + ".json")).write_text(json.dumps(whole, indent=1) + "\n")


def replay(simnel, directory, ledger):
    """Outcome of each recording by its name."""
    command = [simnel, "conformance", "golden", str(directory), "--json", "--ledger", ledger]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    if not outcomes:
        sys.exit(f"fuzz-linux: simnel gave no outcome: {result.stderr.strip()}")
    return {outcome["name"]: outcome for outcome in outcomes}


def never_drawn(simnel, kinds, coverage):
    """Words that both sides have and no case has had, by discipline."""
    missing = []
    for kind in kinds:
        listed = subprocess.run([simnel, "words", kind], text=True, capture_output=True, check=False)
        words = [line.split()[0] for line in listed.stdout.splitlines()
                 if line[:1].isalpha() and "ours)" not in line]
        rest = [word for word in words if f"{kind} {word}" not in coverage]
        if rest:
            missing.append(f"{kind} {' '.join(rest)}")
    return missing


def clear(directory):
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def shrink(options_, case, lines, end, scratch, tries=60):
    """Fewer packets that still differ: cut behind the difference, then leave pieces out."""
    def differs(kept):
        nonlocal tries
        tries -= 1
        answer, _ = ask(options_.oracle, case, arrivals_text(kept, end))
        if answer is None:
            return False
        clear(scratch)
        record(scratch, case, kept, end, answer)
        return any(not outcome["equal"] and outcome["ledger"] is None
                   for outcome in replay(options_.simnel, scratch, options_.ledger).values())

    piece = len(lines) // 2
    while piece and tries > 0:
        at = len(lines) - piece
        while at >= 0 and tries > 0:
            kept = lines[:at] + lines[at + piece:]
            # Words of a change say all that was changed before.
            is_whole = not any(",change," in line and line.count(",") > 2
                               for line in lines[at:at + piece])
            if kept and is_whole and differs(kept):
                lines = kept
            at -= piece
        piece //= 2
    return lines


def check(options_):
    equal = total = 0
    for path in sorted(pathlib.Path(options_.check).rglob("*.json")):
        case = json.loads(path.read_text())
        csv, out = (gzip.open(path.with_suffix(end), "rt").read() for end in (".csv.gz", ".out.gz"))
        answer, why = ask(options_.oracle, case, csv)

        def events(text):
            return [line for line in (text or "").splitlines()
                    if not line.startswith("#") and line.split()[1] not in ("state", "timer")]
        total += 1
        recorded, asked = events(out), events(answer)
        if recorded == asked:
            equal += 1
            continue
        same = next((n for n, (a, b) in enumerate(zip(recorded, asked)) if a != b),
                    min(len(recorded), len(asked)))
        print(f"{case['group']}/{case['name']}: differs after {same} of {len(recorded)} lines: "
              f"{why or (recorded[same:same + 1], asked[same:same + 1])}")
    print(f"{total} recordings: the oracle's answer equals {equal}")
    return 0 if equal == total else 1


def fuzz(options_):
    directory = pathlib.Path(options_.directory)
    counts_file, found = directory / "fuzz.json", directory / "found"
    counts = {"packets": 0, "cases": 0, "refused": 0, "differences": [], "coverage": {}}
    if counts_file.exists():
        counts = json.loads(counts_file.read_text())
    coverage = collections.Counter(counts["coverage"])
    kinds = [options_.only] if options_.only else KINDS
    batch, scratch = directory / "batch", directory / "scratch"
    seed, until, new = options_.seed, time.monotonic() + options_.seconds, 0
    first, packets = seed, 0
    last = first + options_.cases if options_.cases else None

    def goes_on():
        return seed < last if last else time.monotonic() < until

    while goes_on():
        clear(batch)
        cases = {}
        for _ in range(min(options_.batch, last - seed) if last else options_.batch):
            case, lines, end, covers = draw_case(seed, kinds, options_.kept)
            seed += 1
            answer, why = ask(options_.oracle, case, arrivals_text(lines, end))
            if answer is None:
                counts["refused"] += 1
                if "refuses" not in why:
                    print(f"seed {seed - 1}: {why}")
                continue
            record(batch, case, lines, end, answer)
            cases[f"{case['group']}/{case['name']}"] = (case, lines, end, covers)
        if not cases:
            continue
        for name, outcome in replay(options_.simnel, batch, options_.ledger).items():
            case, lines, end, covers = cases[name]
            packets += packets_of(lines)
            coverage.update(set(covers))
            if outcome["equal"] or outcome["ledger"]:
                continue
            new += 1
            if options_.shrink:
                lines = shrink(options_, case, lines, end, scratch)
            answer, _ = ask(options_.oracle, case, arrivals_text(lines, end))
            record(found, case, lines, end, answer)
            counts["differences"].append(case["name"])
            print(f"DIFFERS {name}: {packets_of(lines)} packets: {case['tc']}\n  "
                  f"{' '.join(case['args'])}\n{outcome['first_difference']}", flush=True)
    counts.update(packets=counts["packets"] + packets, cases=counts["cases"] + seed - first,
                  coverage=dict(sorted(coverage.items())))
    part = counts_file.with_suffix(".part")
    part.write_text(json.dumps(counts, indent=1) + "\n")
    part.rename(counts_file)
    clear(batch)
    clear(scratch)
    print(f"seeds {first} to {seed - 1}: {packets} packets, {new} differences; in all "
          f"{counts['packets']} packets, {len(coverage)} settings covered "
          f"(least often: {', '.join(f'{k} {n}' for k, n in coverage.most_common()[:-6:-1])})")
    for line in never_drawn(options_.simnel, kinds, coverage):
        print(f"never drawn: {line}")
    return 1 if new else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--simnel")
    parser.add_argument("--ledger")
    parser.add_argument("--directory")
    parser.add_argument("--check", help="recordings to ask the oracle about")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, help="so many cases, however long they take")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--only")
    parser.add_argument("--kept", action="store_true",
                        help="draw also changes of which the ledger keeps a difference")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    given = parser.parse_args()
    for name in ("batch", "scratch"):
        if given.directory:
            (pathlib.Path(given.directory) / name).mkdir(parents=True, exist_ok=True)
    if given.directory:
        lock = open(pathlib.Path(given.directory) / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"fuzz-linux: another run has {given.directory}: wait for it, or name another")
    sys.exit(check(given) if given.check else fuzz(given))


if __name__ == "__main__":
    main()
