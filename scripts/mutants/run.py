"""Tries changes that cargo-mutants lists on the tests that reach them; scripts/mutants.sh calls this.

The changes are built into one program (switch.py). Each test first runs by itself, and says which of
them it reaches. Then each change is tried on the tests that reach it, the quickest first, until one
fails. What no test reaches is missed at no cost.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import threading
import time

import switch

OUT_OF_TIME = (-signal.SIGXCPU, -signal.SIGKILL)
MEMORY = 2 << 30  # bytes of address space of a test
# Seconds by the clock that a test may take at least: it may wait long for its turn on a busy machine.
PATIENCE = 600
CAUGHT, ENDLESS, MISSED = "caught", "without an end", "missed"
UNVIABLE, LEFT_OUT = "do not compile", "left out"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("package")
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--lib", action="store_true")
    parser.add_argument("--longest", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    out = asked.tree.parent
    listed = json.loads((out / "list.json").read_text())
    numbers = {mutant["name"]: number for number, mutant in enumerate(listed, 1)}
    chosen = [m for m in listed if not asked.file or any(matches(m["file"], g) for g in asked.file)]
    if asked.sample is not None and asked.sample < len(chosen):
        print(f"mutants: {asked.sample} drawn of {len(chosen)}, seed {asked.seed}")
        chosen = random.Random(asked.seed).sample(chosen, asked.sample)
    if not chosen:
        sys.exit("mutants: there is nothing to change")
    results = Results(out / f"{asked.package}.json", asked.tree, [asked.longest, asked.lib])
    crate = Crate(asked.tree, asked.package, len(listed) + 1)
    crate.build_in({numbers[m["name"]]: m for m in chosen}, results)

    suites = {"own": [asked.package, *(["--lib"] if asked.lib else [])]}
    if asked.golden:
        suites["golden"] = ["simnel-lab", "--test", "golden"]
    left = [m for m in chosen if results.get(m) not in (UNVIABLE, LEFT_OUT)]
    for suite, target in suites.items():
        if not left:
            break
        results.suite = suite
        tests = Tests(asked.tree, crate.tests(target), asked, out)
        tests.try_all([(numbers[m["name"]], m) for m in left if results.get(m) is None], results)
        left = [m for m in left if results.get(m) == MISSED]
        found = collections.Counter(results.get(m) for m in chosen)
        noticed = f"{found[CAUGHT]} caught, {found[ENDLESS]} without an end"
        print(f"mutants: {suite} tests: {noticed}, {len(left)} missed", flush=True)
    return report(asked, chosen, results)


def matches(path, glob):
    return pathlib.PurePath(path).match(glob)


def report(asked, chosen, results):
    """Says what survives; the status is 1 if that is not what is listed."""
    files = collections.defaultdict(collections.Counter)
    for mutant in chosen:
        files[mutant["file"]][results.last(mutant)] += 1
    total = sum(files.values(), collections.Counter())
    if len(files) > 1:
        for file, of in sorted(files.items(), key=lambda item: -item[1][MISSED]):
            print(f"  {file}: {of[MISSED]} of {of[CAUGHT] + of[ENDLESS] + of[MISSED]} missed")
    caught, missed = total[CAUGHT] + total[ENDLESS], total[MISSED]
    share = bounds(caught, missed) if asked.sample is not None else f"{percent(caught, missed)} %"
    print(f"mutants: {asked.package}: {caught} of {caught + missed} caught: {share}")
    print(f"mutants: {total[UNVIABLE]} {UNVIABLE}, {total[LEFT_OUT]} {LEFT_OUT}: in constants, or no place for a switch")
    survivors = collections.defaultdict(list)
    for mutant in chosen:
        if results.last(mutant) == MISSED:
            survivors[plain(mutant)].append(mutant)
    allowed = {
        line.rsplit(" | ", 1)[0]
        for line in pathlib.Path("scripts/mutants.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    wrong = [
        f"survives, and is not listed: {mutant['name']}"
        for name, mutants in sorted(survivors.items())
        for mutant in mutants
        if name not in allowed
    ]
    if asked.sample is None:
        # One line stands for all places of a file where the same change survives.
        crate = f"crates/{asked.package.removeprefix('simnel-')}/"
        for name in sorted(allowed - set(survivors)):
            path = name.split(": ")[0]
            if path.startswith(crate) and (not asked.file or any(matches(path, g) for g in asked.file)):
                wrong.append(f"is listed, and does not survive: {name}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


def plain(mutant):
    """FILE: CHANGE, without the place in the file, which moves."""
    return re.sub(r":\d+:\d+: ", ": ", mutant["name"], count=1)


def percent(caught, missed):
    """The share caught; of nothing, all."""
    return round(100 * caught / (caught + missed), 1) if caught + missed else 100.0


def bounds(caught, missed):
    """The share of a sample, and where that of all lies with a certainty of 95 % (Wilson 1927)."""
    n, z = max(caught + missed, 1), 1.96
    p, scale = caught / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / scale
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale
    low, high = 100 * (middle - half), 100 * (middle + half)
    return f"{percent(caught, missed)} % (of all, with a certainty of 95 %: {low:.1f} to {high:.1f})"


class Results:
    """What came of each change, kept in a file: what is done is not done again."""

    def __init__(self, path, tree, tests):
        self.path, self.suite, self.lock, self.written = path, "own", threading.Lock(), time.monotonic()
        sources = hashlib.sha256()
        files = *tree.glob("crates/**/*"), *tree.glob("scripts/mutants/*.py"), tree / "Cargo.lock"
        for file in sorted(files):
            if file.is_file():
                sources.update(str(file.relative_to(tree)).encode() + b"\0" + file.read_bytes())
        self.kept = {"sources": sources.hexdigest(), "asked": tests, "own": {}, "golden": {}}
        if path.exists() and (kept := json.loads(path.read_text()))["sources"] == self.kept["sources"]:
            for suite in ("own", "golden"):
                # Other tests may catch what these have missed.
                same = kept["asked"] == tests
                self.kept[suite] = {name: r for name, r in kept[suite].items() if same or r != MISSED}

    def get(self, mutant):
        return self.kept[self.suite].get(mutant["name"])

    def last(self, mutant):
        """With all suites that were tried."""
        own = self.kept["own"].get(mutant["name"])
        return self.kept[self.suite].get(mutant["name"]) if own == MISSED else own

    def set(self, mutant, result):
        with self.lock:
            self.kept[self.suite][mutant["name"]] = result
            if time.monotonic() - self.written > 10:
                self.write()

    def write(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.kept, indent=0))
        new.replace(self.path)
        self.written = time.monotonic()


class Crate:
    """The crate with the changes in it."""

    def __init__(self, tree, package, count):
        self.tree, self.package = tree, package
        self.source = tree / "crates" / package.removeprefix("simnel-") / "src"
        self.count = count

    def cargo(self, *words):
        """Runs cargo; its messages."""
        # What a change makes unused is no error.
        env = dict(os.environ, RUSTFLAGS="--cap-lints allow", CARGO_TERM_COLOR="never")
        said = ["--locked", "--message-format", "json"]
        command = ["cargo", words[0], *said, *words[1:]]
        done = subprocess.run(command, cwd=self.tree, env=env, capture_output=True, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return done, messages

    def build_in(self, mutants, results):
        """Puts all into the source that the compiler takes there."""
        files, without, firm = {}, set(), collections.defaultdict(set)
        for number, mutant in mutants.items():
            path = mutant["file"]
            if path not in files:
                files[path] = switch.Source((self.tree / path).read_text())
            if results.get(mutant) in (UNVIABLE, LEFT_OUT):
                without.add(number)
                continue
            try:
                files[path].add(number, mutant)
            except switch.Inexpressible:
                results.set(mutant, LEFT_OUT)
        (self.source / "mutants.rs").write_text(switch.RUNTIME.replace("COUNT", str(self.count)))
        root = self.source / "lib.rs"
        declaration = "\n#[doc(hidden)]\n#[allow(missing_docs)]\npub mod mutants;\n"
        if str(root.relative_to(self.tree)) not in files:
            root.write_text(root.read_text() + declaration)
        while True:
            places = {}
            for path, source in files.items():
                text, places[path] = source.render(without, firm[path])
                text += declaration if self.tree / path == root else ""
                (self.tree / path).write_text(text)
            done, messages = self.cargo("check", "--package", self.package, "--lib")
            if done.returncode == 0:
                results.write()
                return
            before = len(without), sum(map(len, firm.values()))
            for message in messages:
                if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
                    self.blame(message["message"], mutants, files, places, without, firm, results)
            if before == (len(without), sum(map(len, firm.values()))):
                sys.exit(f"mutants: the changed source does not compile\n{errors(done, messages)}")

    def blame(self, error, mutants, files, places, without, firm, results):
        """Takes out what an error of the compiler is about."""
        const = re.match(r"cannot call non-const .*`(?:.*::)?(\w+)(?:::<.*>)?` in ", error["message"])
        if const and const[1] != "on":
            # This function is needed where constants are made.
            for path, source in files.items():
                for number, place in source.constant.items():
                    if mutants[number]["function"]["function_name"].split("::")[-1] == const[1]:
                        firm[path].add(place)
            return
        for span in error["spans"]:
            if not span["is_primary"]:
                continue
            while span["file_name"] not in places and span["expansion"]:
                span = span["expansion"]["span"]
            around = places.get(span["file_name"])
            if not around:
                continue
            begin, end = span["byte_start"], span["byte_end"]
            if error["code"] and error["code"]["code"] == "E0004":
                # Without one of these arms the match would not be complete.
                for number in switch.arms((self.tree / span["file_name"]).read_bytes()[end:].decode()):
                    without.add(number)
                    results.set(mutants[number], UNVIABLE)
                continue
            inside = [place for place in around if place[0] <= begin and end <= place[1]]
            inside = inside or [place for place in around if place[0] < end and begin < place[1]]
            width = min((place[1] - place[0] for place in inside), default=0)
            for place in inside:
                if place[1] - place[0] == width and place[2] not in without:
                    without.add(place[2])
                    results.set(mutants[place[2]], UNVIABLE if place[3] and not const else LEFT_OUT)

    def tests(self, target):
        """The programs of a package's tests, each with the folder where it runs."""
        done, messages = self.cargo("test", "--no-run", "--package", target[0], *(target[1:] or ["--tests"]))
        if done.returncode != 0:
            sys.exit(f"mutants: the tests do not compile\n{errors(done, messages)}")
        return [
            (message["executable"], pathlib.Path(message["manifest_path"]).parent)
            for message in messages
            if message["reason"] == "compiler-artifact" and message["executable"]
        ]


def errors(done, messages):
    """The compiler's errors as it would show them, and cargo's."""
    said = [message["message"] for message in messages if message["reason"] == "compiler-message"]
    shown = [message["rendered"] for message in said if message["level"] == "error"]
    return "".join(shown)[:5000] + done.stderr[-500:]


Test = collections.namedtuple("Test", "program folder name processor wall")


class Tests:
    """Single tests, and which changes each of them reaches."""

    def __init__(self, tree, programs, asked, out):
        self.jobs, self.longest = asked.jobs, asked.longest
        self.reaching = collections.defaultdict(list)
        # The last one that caught a change of a function may well catch the next one.
        self.hot = {}
        # What a test of drawn values finds must not help the next time.
        for crate in tree.glob("crates/*/Cargo.toml"):
            (crate.parent / "proptest-regressions").touch()
        names = [(p, folder, name) for p, folder in programs for name in self.names(p, folder)]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            paths = [out / f"reached-{at}" for at in range(len(names))]
            reached = list(pool.map(lambda name, path: self.reach(*name, path), names, paths))
        runs = sorted((run for run in reached if run), key=lambda run: run[0].processor)
        for test, numbers in runs:
            for number in numbers:
                self.reaching[number].append(test)
        print(f"mutants: {len(runs)} tests of {sum(test.processor for test, _ in runs):.1f} s", flush=True)
        for name, run in zip(names, reached):
            if not run:
                print(f"mutants: takes longer than {self.longest} s and is not asked: {name[2]}", flush=True)

    def names(self, program, folder):
        command = [program, "--list", "--format", "terse"]
        said = [
            subprocess.run(command + more, cwd=folder, check=True, capture_output=True, text=True).stdout
            for more in ([], ["--ignored"])
        ]
        every, ignored = (re.findall(r"^(.*): test$", text, re.M) for text in said)
        return [name for name in every if name not in ignored]

    def reach(self, program, folder, name, path):
        """Runs a test with no change: the test with its times, and the numbers of the changes it reaches.

        None if it takes too long.
        """
        test = Test(program, folder, name, self.longest, PATIENCE)
        path.touch()
        begin = time.monotonic()
        status, processor = run(test, {"MUTANTS_REACHED": str(path)})
        numbers = [number for (number,) in struct.iter_unpack("=I", path.read_bytes())]
        path.unlink()
        if status in OUT_OF_TIME:
            return None
        if status != 0:
            sys.exit(f"mutants: a test fails without any change: {name}")
        return test._replace(processor=processor, wall=time.monotonic() - begin), numbers

    def try_all(self, mutants, results):
        """Dear ones first: nothing waits for them at the end."""
        mutants.sort(key=lambda item: -sum(test.processor for test in self.reaching[item[0]]))
        done = 0
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for _ in pool.map(lambda item: results.set(item[1], self.attempt(*item)), mutants):
                done += 1
                if done % 500 == 0:
                    print(f"mutants: {done} of {len(mutants)} tried", flush=True)
        results.write()

    def attempt(self, number, mutant):
        function = mutant["file"], (mutant["function"] or {}).get("function_name")
        hot = self.hot.get(function)
        tests = self.reaching[number]
        for test in sorted(tests, key=lambda test: test is not hot):
            limits = math.ceil(8 * test.processor), 20 * test.wall + PATIENCE
            status, _ = run(test._replace(processor=limits[0], wall=limits[1]), {"MUTANT": str(number)})
            if status != 0:
                self.hot[function] = test
                return ENDLESS if status in OUT_OF_TIME else CAUGHT
        return MISSED


def run(test, variables):
    """Runs a test within its limits; how it ended, and its seconds of processor."""
    env = dict(
        os.environ,
        RUST_BACKTRACE="0",
        PROPTEST_RNG_SEED="1",
        PROPTEST_MAX_SHRINK_ITERS="0",
        CARGO_MANIFEST_DIR=str(test.folder),
        **variables,
    )
    command = [test.program, "--exact", test.name, "--test-threads", "1", "--quiet"]
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=test.folder, env=env, stdin=quiet, stdout=quiet, stderr=quiet)
    resource.prlimit(child.pid, resource.RLIMIT_CPU, (test.processor, test.processor + 1))
    resource.prlimit(child.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
    watch = threading.Timer(test.wall, child.kill)
    watch.start()
    _, status, usage = os.wait4(child.pid, 0)
    watch.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
