"""A data set takes rows of one sweep only: by contents of traces, and code of disciplines."""

import functools
import os
import subprocess
import sys

import pytest

import simnel
from simnel._identity import code

LIMIT = 100

OWN = """
import collections, simnel
LIMIT = 100
class Own(simnel.Discipline):
    kinds = {"one", "two", "three"}
    def __init__(self):
        super().__init__()
        self.queue = collections.deque()
    def enqueue(self, packet, now):
        if packet.dscp in {"a", "b", "c"} or len(self.queue) == LIMIT:
            return False
        self.queue.append(packet)
    def dequeue(self, now):
        return self.queue.popleft() if self.queue else None
"""


def own(text=OWN):
    names = {"__name__": "own"}
    exec(text, names)
    return names["Own"]


def test_code_tells_disciplines_apart():
    told = [
        code(own(text))
        for text in (
            OWN,
            OWN.replace("LIMIT = 100", "LIMIT = 101"),
            OWN.replace("return False", "return None"),
            OWN.replace("popleft", "pop"),
            OWN.replace('"three"', '"four"'),
        )
    ]
    assert all(one not in told[:n] for n, one in enumerate(told))
    assert code(own("\n# Another place.\n" + OWN)) == told[0]


def test_what_code_encloses_tells_it_apart():
    def limited(limit):
        class Limited(simnel.Discipline):
            def enqueue(self, packet, now):
                return limit < LIMIT

            def dequeue(self, now):
                return None

        return Limited

    assert code(limited(1)) == code(limited(1)) != code(limited(2))
    assert code(lambda: limited(1)()) != code(lambda: limited(2)())
    assert code(functools.partial(limited, 1)) != code(functools.partial(limited, 2))


def test_code_is_equal_in_all_processes(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    program = "import own; from simnel._identity import code; print(code(own.Own))"
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPYCACHEPREFIX": str(tmp_path)},
            cwd=tmp_path,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        # The third reads what the first has compiled.
        for seed in ("1", "2", "1")
    }
    assert len(said) == 1


def sweep(scenario, **other):
    return simnel.sweep(
        scenario, **{"over": {"rtt": ["10ms"]}, "repetitions": 1, "progress": False, **other}
    )


def test_a_data_set_takes_no_rows_of_another_discipline_of_that_name(line, tmp_path):
    scenario = simnel.Scenario.of(line, simnel.ping(), duration="1s", warmup="0s")
    for text in (OWN, OWN, OWN.replace("LIMIT = 100", "LIMIT = 1")):
        if text is OWN:
            assert sweep(scenario, qdisc=own(text), to=tmp_path).count_rows() == 1
            continue
        with pytest.raises(simnel.Error, match="belongs to another sweep"):
            sweep(scenario, qdisc=own(text), to=tmp_path)


NAMES = ["up.trace", "a'b", 'a"b', "it's \"a\"", "a\\'\"b", "ü\tb"]


@pytest.mark.parametrize("over", [{"rtt": ["10ms"]}, *({"line.trace": [name]} for name in NAMES)])
def test_a_data_set_takes_no_rows_of_another_trace(tmp_path, over):
    def scenario(place, times):
        directory = tmp_path / place
        directory.mkdir()
        for name in NAMES:
            (directory / name).write_text("".join(f"{time}\n" for time in times))
        text = (
            'duration = "1s"\nwarmup = "0s"\n[line]\ntrace = {up = "up.trace", down = "up.trace"}\n'
            'rtt = "50ms"\n[[traffic]]\nkind = "ping"\n'
        )
        return simnel.Scenario(text, directory=directory)

    to = tmp_path / "runs"
    assert sweep(scenario("one", [1, 2]), to=to, over=over).count_rows() == 1
    assert sweep(scenario("moved", [1, 2]), to=to, over=over).count_rows() == 1
    with pytest.raises(simnel.Error, match="belongs to another sweep"):
        sweep(scenario("other", [1, 9]), to=to, over=over)


@pytest.mark.parametrize(
    "key, values",
    [("qdisc", [own(), own()]), ("traffic.bulk.count", [1, "1"])],
)
def test_values_that_look_alike_are_refused(line, key, values):
    with pytest.raises(simnel.Error, match="stands for two values"):
        sweep(line, over={key: values}, duration="100000s")
