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
import signal
import subprocess
import sys
import time

from fuzz_linux.attributes import configuration
from fuzz_linux.cases import draw_case
from fuzz_linux.draw import KINDS, NEW

# The oracle's status where Linux takes no such settings.
REFUSED = 3
# The release that is meant where a recording names none.
OLDEST = "6.1"


def ended(status):
    """A status in words: of what a signal ended it is 128 and the signal."""
    try:
        return f"{signal.Signals(status - 128).name}: a mistake in it, or a function of Linux's that it lacks"
    except ValueError:
        return f"status {status}"


def ask(oracle, case, arrivals):
    """Linux's answer: lines, or None and why not."""
    hz = next((arg[3:] for arg in case["args"] if arg.startswith("hz=")), "1000")
    result = subprocess.run([f"{oracle}-{hz}"], input=configuration(case) + arrivals, text=True,
                            capture_output=True, check=False)
    status = result.returncode if result.returncode >= 0 else 128 - result.returncode
    return (result.stdout, "") if status == 0 else (None, result.stderr.strip() or ended(status))


# Shrinking: recordings in a directory, replayed by `simnel conformance golden`.

def arrivals_text(lines, end):
    numbered, number = [], 0
    for line in lines:
        columns = line.split(",")
        if columns[1] == "enq+":
            columns[2] = str(number)
            number += 1
        numbered.append(",".join(columns))
    return "\n".join([*numbered, end]) + "\n"


def packets_of(lines):
    return sum(",enq+," in line for line in lines)


def record(path, case, text, answer):
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, part in ((".csv.gz", text), (".out.gz", answer)):
        (path.parent / (path.name + suffix)).write_bytes(gzip.compress(part.encode(), mtime=0))
    whole = {**case, "packets": packets_of(text.splitlines())}
    (path.parent / (path.name + ".json")).write_text(json.dumps(whole, indent=1) + "\n")


def replay(simnel, directory, ledger):
    """Outcomes of the recordings in a directory."""
    command = [simnel, "conformance", "golden", str(directory), "--json", "--ledger", ledger]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    if not outcomes:
        sys.exit(f"fuzz-linux: simnel gave no outcome: {result.stderr.strip()}")
    return outcomes


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


def shrink(options_, path, scratch, tries=80):
    """Makes of a recording that differs one with fewer packets: cut behind the difference, then
    pieces left out."""
    case = json.loads(path.with_suffix(".json").read_text())
    *lines, end = gzip.open(path.with_suffix(".csv.gz"), "rt").read().splitlines()

    def differs(kept):
        nonlocal tries
        tries -= 1
        text = arrivals_text(kept, end)
        answer, _ = ask(options_.oracle, case, text)
        if answer is None:
            return False
        clear(scratch)
        record(scratch / case["group"] / case["name"], case, text, answer)
        return any(not outcome["equal"] and outcome["ledger"] is None
                   for outcome in replay(options_.simnel, scratch, options_.ledger))

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
    text = arrivals_text(lines, end)
    answer, _ = ask(options_.oracle, case, text)
    record(path, case, text, answer)
    return packets_of(lines)


def check(options_):
    equal = total = 0
    for path in sorted(pathlib.Path(options_.check).rglob("*.json")):
        case = json.loads(path.read_text())
        release = next((arg[6:] for arg in case["args"] if arg.startswith("linux=")), OLDEST)
        if release not in (OLDEST, options_.linux):
            continue
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


class Worker:
    """A `simnel conformance fuzz` with an oracle of its own: some cases on their way, verdicts in
    their order."""
    AHEAD = 3

    def __init__(self, options_, found):
        command = [options_.simnel, "conformance", "fuzz", "--oracle", options_.oracle,
                   "--ledger", options_.ledger, "--found", str(found)]
        self.process = subprocess.Popen(command, text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.under_way = collections.deque()

    def is_full(self):
        return len(self.under_way) > self.AHEAD

    def send(self, case, covers):
        self.under_way.append((case, covers))
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()

    def verdict(self):
        line = self.process.stdout.readline()
        case, covers = self.under_way.popleft()
        if not line:
            sys.exit(f"fuzz-linux: simnel ended at {case['name']}: {' '.join(case['args'])}")
        return case, covers, json.loads(line)


class Counts:
    """What was asked until now, in a file."""
    EVERY = 30

    def __init__(self, path):
        self.path, self.saved = path, time.monotonic()
        self.all = {"packets": 0, "cases": 0, "refused": 0, "differences": [], "coverage": {}}
        if path.exists():
            self.all = json.loads(path.read_text())
        self.all.setdefault("seeds", [])
        self.coverage = collections.Counter(self.all["coverage"])
        self.packets = self.new = self.broken = 0

    def next_seed(self):
        return max((last + 1 for _, last in self.all["seeds"]), default=1)

    def add(self, case, covers, verdict):
        seed = int(case["name"].split("-")[1])
        seeds = self.all["seeds"]
        if seeds and seeds[-1][1] == seed - 1:
            seeds[-1][1] = seed
        else:
            seeds.append([seed, seed])
        self.all["cases"] += 1
        if verdict["refused"] is not None:
            self.all["refused"] += 1
            if verdict["refused"] != REFUSED:
                self.broken += 1
                print(f"seed {seed}: the oracle ends with {ended(verdict['refused'])}", flush=True)
            return
        self.packets += verdict["packets"]
        self.all["packets"] += verdict["packets"]
        self.coverage.update(set(covers))
        if time.monotonic() > self.saved + self.EVERY:
            self.save()

    def save(self):
        self.saved = time.monotonic()
        self.all["coverage"] = dict(sorted(self.coverage.items()))
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.all, indent=1) + "\n")
        part.rename(self.path)


def fuzz(options_):
    directory = pathlib.Path(options_.directory)
    found, scratch = directory / "found", directory / "scratch"
    counts = Counts(directory / "fuzz.json")
    kinds = [kind for kind in KINDS if NEW.get(kind, options_.linux) == options_.linux]
    if options_.only:
        if options_.only not in kinds:
            sys.exit(f"fuzz-linux: {options_.only}: none of {', '.join(sorted(kinds))}")
        kinds = [options_.only]
    first = seed = options_.seed if options_.seed is not None else counts.next_seed()
    until, last = time.monotonic() + options_.seconds, None
    if options_.cases:
        last = first + options_.cases
    worker = Worker(options_, found)

    def judged():
        case, covers, verdict = worker.verdict()
        counts.add(case, covers, verdict)
        if verdict["difference"] is None:
            return
        counts.new += 1
        path = found / verdict["name"]
        packets = verdict["packets"]
        if options_.shrink:
            packets = shrink(options_, path, scratch)
        counts.all["differences"].append(case["name"])
        print(f"DIFFERS {verdict['name']}: {packets} packets: {case['tc']}\n  "
              f"{' '.join(case['args'])}\n{verdict['difference']}", flush=True)

    while seed < last if last else time.monotonic() < until:
        case, covers = draw_case(seed, kinds, options_.kept)
        if options_.linux != OLDEST:
            case["args"].append(f"linux={options_.linux}")
        worker.send(case, covers)
        seed += 1
        if worker.is_full():
            judged()
    while worker.under_way:
        judged()
    counts.save()
    clear(scratch)
    print(f"seeds {first} to {seed - 1}: {counts.packets} packets, {counts.new} differences; in all "
          f"{counts.all['packets']} packets, {len(counts.coverage)} settings covered "
          f"(least often: {', '.join(f'{k} {n}' for k, n in counts.coverage.most_common()[:-6:-1])})")
    for line in never_drawn(options_.simnel, kinds, counts.coverage):
        print(f"never drawn: {line}")
    return 1 if counts.new or counts.broken else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--oracle", required=True, help="programs, but for -HZ")
    parser.add_argument("--linux", default=OLDEST, help="release of the oracle's source")
    parser.add_argument("--simnel")
    parser.add_argument("--ledger")
    parser.add_argument("--directory")
    parser.add_argument("--check", help="recordings to ask the oracle about")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, help="so many cases, however long they take")
    parser.add_argument("--seed", type=int, help="the first; without it, one that was not asked yet")
    parser.add_argument("--only")
    parser.add_argument("--kept", action="store_true",
                        help="draw also changes of which the ledger keeps a difference")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    given = parser.parse_args()
    if given.directory:
        (pathlib.Path(given.directory) / "scratch").mkdir(parents=True, exist_ok=True)
        lock = open(pathlib.Path(given.directory) / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"fuzz-linux: another run has {given.directory}: wait for it, or name another")
    sys.exit(check(given) if given.check else fuzz(given))


if __name__ == "__main__":
    main()
