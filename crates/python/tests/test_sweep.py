"""Many runs: a sweep is its single runs, whoever does them."""

import errno
import multiprocessing
import os
import pickle
import signal
import socket
import stat
import threading
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pyarrow.parquet as parquet
import pytest

import simnel
from simnel import _simnel, _store, _sweep, geomspace
from simnel._store import Store
from simnel._words import toml

OVER = {"rtt": ["10ms", "100ms"], "qdisc": ["cake bandwidth {rate}", "fq_codel"]}


def sweep(line, **other):
    return simnel.sweep(
        line, over=OVER, repetitions=2, duration="2s", warmup="0s", progress=False, **other
    )


def test_a_sweep_is_its_single_runs(line):
    table = sweep(line)
    assert len(table) == 8 and table["seed"] == [1, 2] * 4
    assert table["rtt"] == ["10ms"] * 4 + ["100ms"] * 4
    for row in range(len(table)):
        scenario = simnel.Scenario.of(line, duration="2s", warmup="0s")
        scenario = scenario.with_values({"line.rtt": table["rtt"][row]})
        run = scenario.run(table["qdisc"][row], table["seed"][row])
        added = run["ping"]["application"]["added_ms"]["p99"]
        assert table["groups.ping.application.added_ms.p99"][row] == added
        assert table["lines.up.mbps"][row] == run.summary["lines"][0]["mbps"]


def test_processes_give_the_same(line):
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        assert sweep(line, executor=executor).to_dict() == sweep(line).to_dict()


def test_scenarios_and_numbers_are_swept(upload):
    table = simnel.sweep(
        upload, over={"traffic.backup.count": [1, 8], "down": ["10mbit"]}, repetitions=1
    )
    assert table["traffic.backup.count"] == ["1", "8"] and table["down"] == ["10mbit"] * 2
    assert table["groups.backup.flows"] == [1.0, 8.0]


@pytest.mark.parametrize(
    "over, said",
    [
        ({"traffic.bluk.count": [1]}, "bluk"),
        ({"rtt": ["10ms", "10mz"]}, "rtt=10mz"),
        ({"qdisc": ["fq_codel", "caek"]}, "cake"),
        ({"qdisc": []}, "no values"),
        ({"rtt": "10ms"}, "`rtt` has one value, '10ms'; expected a list: .'10ms'."),
        ({"rtt": ["10ms", "20ms", "10ms"]}, "`rtt=10ms` is said twice"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(line, over, said):
    with pytest.raises(simnel.Error, match=said):
        simnel.sweep(line, over=over, duration="100000s", progress=False)


def test_equal_values_are_known_whatever_they_are():
    class Odd:
        """A value that counts with how many it is compared."""

        compared = 0

        def __init__(self, name):
            self.name = name

        def __eq__(self, other):
            Odd.compared += 1
            return self.name == other.name

        def __str__(self):
            return self.name

    _sweep._each_once("traffic.bulk.size", [Odd(f"{n}kb") for n in range(1000)])
    assert Odd.compared == 0, "a sweep may have many values"
    for values, said in [
        ([1, 2, 1.0], "said twice"),
        (["1s", "2s", "1s"], "said twice"),
        ([{"up": "1%"}, {"down": "1%"}, {"up": "1%"}], "said twice"),
        ([Odd("a"), Odd("a")], "said twice"),
        ([1, "1"], "two values"),
        ([type("One", (), {}), type("One", (), {})], "two values"),
    ]:
        with pytest.raises(simnel.Error, match=said):
            _sweep._each_once("traffic.bulk.size", values)


def test_values_may_come_one_by_one(line):
    over = {"rtt": (f"{ms}ms" for ms in (10, 20))}
    table = simnel.sweep(line, over=over, repetitions=1, duration="1s", warmup="0s", progress=False)
    assert table["rtt"] == ["10ms", "20ms"]


def test_ctrl_c_ends_a_sweep(line, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
        simnel.sweep(line, over={"rtt": ["10ms", "20ms"]}, duration="100000s", progress=False)


class Interrupted:
    """An executor in the midst of whose code Ctrl-C comes."""

    def __init__(self, times):
        self.times, self.whole, self.futures = times, 0, []

    def submit(self, work, *arguments):
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
        self.whole += 1
        self.futures.append(Future())
        return self.futures[-1]


def test_the_first_ctrl_c_comes_behind_what_an_executor_does(line, ctrl_c):
    executor = Interrupted(1)
    with pytest.raises(KeyboardInterrupt):
        sweep(line, executor=executor)
    assert executor.whole == 1 and executor.futures[0].cancelled()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    # The second comes at once: the executor may never end what it does.
    executor = Interrupted(2)
    with pytest.raises(KeyboardInterrupt):
        sweep(line, executor=executor)
    assert executor.whole == 0


@pytest.mark.parametrize("fault", [OSError("the connection is gone"), KeyboardInterrupt("again")])
def test_an_executor_that_cannot_stop_hides_nothing(line, ctrl_c, fault):
    class Gone(Interrupted):
        def stop(self):
            raise fault

    executor = Gone(1)
    with pytest.raises(KeyboardInterrupt):
        sweep(line, executor=executor)
    assert executor.futures[0].cancelled()


def test_what_another_sweep_has_stopped_is_no_row(line):
    stop = _simnel.Stop()
    stop.set()
    executor = Broken(8)
    executor.submit = lambda work, jobs: Broken.submit(executor, work, jobs, stop)
    with pytest.raises(simnel.Error, match="stopped by another sweep"):
        sweep(line, executor=executor, batch=3)


def test_ctrl_c_does_what_the_program_wants(line, ctrl_c):
    asked = []
    signal.signal(signal.SIGINT, lambda *_: asked.append(1))
    # The runs that come do not end the program.
    with ThreadPoolExecutor(1) as threads:
        executor = Interrupted(0)
        executor.submit = lambda *what: signal.raise_signal(signal.SIGINT) or threads.submit(*what)
        assert len(sweep(line, executor=executor)) == 8
    assert len(asked) == 8
    # In another thread there is no Ctrl-C to keep.
    with ThreadPoolExecutor(1) as threads:
        assert len(threads.submit(sweep, line).result()) == 8


def test_a_program_is_told_of_each_ctrl_c_once(line, ctrl_c):
    near, far = socket.socketpair()
    far.setblocking(False)
    signal.signal(signal.SIGINT, lambda number, frame: asked.append((number, frame)))
    asked = []
    # As asyncio's loops learn of signals.
    before = signal.set_wakeup_fd(far.fileno())
    try:
        with ThreadPoolExecutor(1) as threads:
            executor = Interrupted(0)
            executor.submit = lambda *what: signal.raise_signal(signal.SIGINT) or threads.submit(*what)
            sweep(line, executor=executor)
    finally:
        signal.set_wakeup_fd(before)
    with near, far:
        assert near.recv(100) == bytes([signal.SIGINT] * 8)
    assert len(asked) == 8
    assert all(number == signal.SIGINT and frame is not None for number, frame in asked)


def test_geometric_steps_keep_their_unit():
    assert geomspace("10ms", "1000ms", 3) == ["10ms", "100ms", "1000ms"]
    assert geomspace("1mbit", "8mbit", 4) == ["1mbit", "2mbit", "4mbit", "8mbit"]
    assert geomspace("5", "5", 1) == ["5"]
    assert geomspace("5", "5", 3) == ["5"] * 3
    assert geomspace("100kbit", "1000kbit", 1) == ["100kbit"]
    # Without exponents, and the ends as they are said.
    assert geomspace("1000000bit", "4000000bit", 3) == ["1000000bit", "2000000bit", "4000000bit"]
    assert geomspace("1234567bit", "7654321bit", 2) == ["1234567bit", "7654321bit"]
    assert geomspace("0.0000001%", "0.00001%", 3) == ["0.0000001%", "0.000001%", "0.00001%"]
    # Of one kind, as `simnel sweep` takes them.
    assert geomspace("10ms", "1s", 3) == ["10ms", "100ms", "1s"]
    assert geomspace("10ms", "1s", 4) == ["10ms", "46.4159ms", "215.443ms", "1s"]
    assert geomspace("500kbit", "2mbit", 3) == ["500kbit", "1000kbit", "2mbit"]
    assert geomspace("1000ms", "1s", 2) == ["1000ms", "1s"]
    # Counts are whole.
    assert geomspace("1", "16", 4) == ["1", "3", "6", "16"]
    assert geomspace("100000", "10000000", 3) == ["100000", "1000000", "10000000"]
    assert geomspace("1.0", "2", 3) == ["1.0", "1.41421", "2"]
    with pytest.raises(simnel.Error, match="no 10 whole numbers from `1` to `4`"):
        geomspace("1", "4", 10)
    for wrong in (("10ms", "1mbit", 3), ("10ms", "20", 3), ("1x", "1y", 2), ("2s", "1ms", 2), ("x", "1s", 3), ("0ms", "1ms", 2), ("2ms", "1ms", 2), (1, 10, 3), ("1..2", "3", 2)):
        with pytest.raises(simnel.Error, match="no range"):
            geomspace(*wrong)


def growing(line, to, repetitions=3, **other):
    over = {"rtt": ["10ms", "100ms"]}
    short = {"duration": "2s", "warmup": "0s", "progress": False}
    return simnel.sweep(line, over=over, repetitions=repetitions, to=to, **short, **other)


def test_a_data_set_has_the_rows_of_the_table(line, tmp_path):
    whole = growing(line, None).to_dict()
    rows = growing(line, tmp_path / "runs").to_table().sort_by("run").to_pydict()
    assert rows.pop("run") == list(range(6))
    assert rows == whole
    # What reads Parquet reads it.
    polars = pytest.importorskip("polars")
    assert polars.scan_parquet(tmp_path / "runs" / "*.parquet").collect().height == 6


class Broken:
    """An executor that breaks after some tasks; counts what it was asked for."""

    def __init__(self, after):
        self.after, self.asked = after, 0

    def submit(self, work, *arguments):
        self.asked += 1
        future = Future()
        if self.asked > self.after:
            future.set_exception(BrokenExecutor("the cluster is gone"))
        else:
            future.set_result(work(*arguments))
        return future


def test_a_data_set_goes_on_where_it_was(line, tmp_path):
    to = tmp_path / "runs"
    with pytest.raises(BrokenExecutor):
        growing(line, to, executor=Broken(4))
    # A part that was being written when the machine died.
    (to / ".part-000001.parquet").write_bytes(b"PAR1")
    rest = Broken(6)
    rows = growing(line, to, executor=rest).to_table().sort_by("run").to_pydict()
    assert rest.asked == 2 and len(list(to.glob("part-*.parquet"))) == 2
    assert rows.pop("run") == list(range(6)) and rows == growing(line, None).to_dict()
    nothing = Broken(0)
    assert growing(line, to, executor=nothing).count_rows() == 6 and nothing.asked == 0


class Later(Broken):
    """An executor whose first task ends, and the others when they are told to."""

    def __init__(self):
        super().__init__(0)
        self.tasks = []

    def submit(self, work, *arguments):
        self.tasks.append((Future(), work, arguments))
        if len(self.tasks) == 1:
            self.end(0)
        return self.tasks[-1][0]

    def end(self, number):
        future, work, arguments = self.tasks[number]
        future.set_result(work(*arguments))


def on_disk(to):
    return sum(parquet.read_metadata(part).num_rows for part in to.glob("part-*.parquet"))


def test_rows_do_not_wait_for_another_task_to_end(line, tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_store, "monotonic", lambda: now[0])
    monkeypatch.setattr(_sweep, "TICK", 0.01)
    executor, add, seen = Later(), Store.add, []

    def go_on():
        if not seen:
            seen.append(on_disk(tmp_path))
            executor.end(1)

    def later(self, runs):
        add(self, runs)
        if not runs:
            if now[0]:
                go_on()
            now[0] += _store.SECONDS

    monkeypatch.setattr(Store, "add", later)
    without_ticks = threading.Timer(20, go_on)
    without_ticks.start()
    assert growing(line, tmp_path, executor=executor, batch=3).count_rows() == 6
    without_ticks.cancel()
    assert seen == [3]


@pytest.mark.parametrize("ends", [KeyboardInterrupt, BrokenExecutor])
def test_what_has_ended_is_kept_as_a_sweep_ends(line, tmp_path, ctrl_c, monkeypatch, ends):
    executor, add = Later(), Store.add

    def at_once(self, runs):
        if len(executor.tasks) == 6 and not executor.tasks[1][0].done():
            if ends is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            executor.tasks[1][0].set_exception(ends("in a worker"))
            executor.tasks[2][0].set_result([None])
            executor.end(3)
            executor.end(4)
        add(self, runs)

    monkeypatch.setattr(Store, "add", at_once)
    with pytest.raises(ends):
        growing(line, tmp_path, executor=executor)
    assert on_disk(tmp_path) == 3 and executor.tasks[5][0].cancelled()


def test_a_data_set_takes_no_other_sweep(line, tmp_path):
    growing(line, tmp_path)
    with pytest.raises(simnel.Error, match="belongs to another sweep"):
        growing(line, tmp_path, qdisc="fq_codel")
    with pytest.raises(simnel.Error, match="expected a directory"):
        growing(line, next(tmp_path.glob("part-*")))


@pytest.mark.parametrize("size", [0, 100, -3])
def test_a_damaged_part_is_named(line, tmp_path, size):
    whole = growing(line, tmp_path).to_table()
    part = next(tmp_path.glob("part-*"))
    part.write_bytes(part.read_bytes()[:size])
    with pytest.raises(simnel.Error, match=f"{part}.*its runs are done again"):
        growing(line, tmp_path)
    part.unlink()
    assert growing(line, tmp_path).to_table().sort_by("run") == whole.sort_by("run")


def test_a_part_that_somebody_named_has_its_runs(line, tmp_path):
    whole = growing(line, tmp_path).to_table()
    part = next(tmp_path.glob("part-*"))
    two = parquet.read_table(part).slice(0, 2)
    part.unlink()
    parquet.write_table(two, tmp_path / "part-000000 (copy).parquet")
    assert growing(line, tmp_path).to_table().sort_by("run") == whole.sort_by("run")


def test_a_full_disk_is_named_and_what_was_there_stays(line, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        said = "part-000000.parquet: No space left on device; expected room.* the same call goes on"
        with pytest.raises(simnel.Error, match=said):
            growing(line, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert growing(line, tmp_path).count_rows() == 6


def test_a_part_is_on_the_disk_before_it_has_its_name(line, tmp_path, monkeypatch):
    done = []

    def noted(what):
        real = getattr(os, what)

        def note(*arguments):
            of_directory = what == "fsync" and stat.S_ISDIR(os.fstat(*arguments).st_mode)
            done.append("fsync of the directory" if of_directory else what)
            return real(*arguments)

        monkeypatch.setattr(os, what, note)

    noted("fsync")
    noted("replace")
    growing(line, tmp_path)
    assert done == ["fsync", "replace", "fsync of the directory"]


def test_two_sweeps_do_not_write_to_one_data_set(line, tmp_path):
    class Second(Broken):
        def submit(self, work, *arguments):
            with pytest.raises(simnel.Error, match="another sweep writes to"):
                growing(line, tmp_path)
            return super().submit(work, *arguments)

    assert growing(line, tmp_path, executor=Second(6)).count_rows() == 6


def test_processes_that_live_on_do_not_keep_a_data_set(line, tmp_path):
    growing(line, tmp_path / "other")
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
        assert growing(line, tmp_path / "runs", executor=executor).count_rows() == 6
        assert growing(line, tmp_path / "runs", executor=executor).count_rows() == 6
    # Nor after a sweep that was refused.
    inherits = []

    class Numbers(Store):
        def _numbers(self):
            inherits.append(os.dup(self._lock.fileno()))
            return super()._numbers()

    for identity in ("one", "two"):
        with pytest.raises(simnel.Error, match="belongs to another sweep"):
            Numbers(tmp_path / "other", identity, None)
    for inherited in inherits:
        os.close(inherited)


def test_a_key_that_is_set_again_is_refused(line):
    for over, said in [
        ({"up": ["2mbit"], "rate": ["1mbit"]}, "`line.up` is set again by `rate`"),
        ({"rtt": ["10ms"], "line.rtt": ["20ms"]}, "`rtt` is set again by `line.rtt`"),
    ]:
        with pytest.raises(simnel.Error, match=said):
            simnel.sweep(line, over=over, duration="100000s", progress=False)
    # In their order: one of the two directions stays.
    over = {"rate": ["1mbit"], "up": ["2mbit"]}
    table = simnel.sweep(line, over=over, repetitions=1, duration="2s", warmup="0s", progress=False)
    scenario = simnel.Scenario.of(line, duration="2s", warmup="0s")
    scenario = scenario.with_values({"line.down": "1mbit", "line.up": "2mbit"})
    run = scenario.run(seed=1)
    for n, way in enumerate(["up", "down"]):
        assert table[f"lines.{way}.mbps"] == [run.summary["lines"][n]["mbps"]]


def test_what_runs_nothing_is_no_executor(line):
    with pytest.raises(simnel.Error, match="an object of `int` runs nothing"):
        sweep(line, executor=3)


def test_a_value_of_another_type_is_a_type_error(line):
    with pytest.raises(TypeError):
        simnel.Scenario.of(line).run(seed=1.5)
    with pytest.raises(TypeError):
        simnel.replay("some.pcap", "pfifo", rate=5)


def test_numbers_of_numpy_are_numbers(line):
    np = pytest.importorskip("numpy")
    traffic = [simnel.bulk(np.int64(2)), simnel.browsing(np.float64(1.5))]
    text = simnel.Scenario.of(line, traffic).toml
    assert "count = 2\n" in text and "rate = 1.5\n" in text
    for key, values in [
        ("traffic.bulk.count", np.arange(1, 3)),
        ("traffic.browsing.rate", np.linspace(0.5, 2, 2)),
    ]:
        table = simnel.sweep(
            line, traffic, over={key: values}, repetitions=1, duration="1s", warmup="0s",
            progress=False,
        )
        assert table[key] == [str(value) for value in values.tolist()]
    assert toml([True, np.float32(0.5), np.uint8(3)]) == "[true, 0.5, 3]"
    assert toml(list(np.array([True, False]))) == "[true, false]"
    growing(line, None, repetitions=np.int64(2), batch=np.int64(2))


def test_several_runs_are_one_task(line, tmp_path):
    counted = Broken(9)
    assert growing(line, None, executor=counted, batch=4).to_dict() == growing(line, None).to_dict()
    assert counted.asked == 2
    with pytest.raises(simnel.Error, match="0 runs in a task"):
        growing(line, None, batch=0)


def test_a_scenario_takes_its_traces_along(tmp_path):
    trace, file = tmp_path / "down.trace", tmp_path / "line.toml"
    trace.write_text("1\n2\n")
    line = '[line]\nup = "5mbit"\ntrace.down = "down.trace"\n'
    file.write_text(f'duration = "2s"\nwarmup = "0s"\n{line}[[traffic]]\nkind = "ping"\n')
    scenario = simnel.Scenario.from_file(file)._read
    packed, here = pickle.dumps(scenario), scenario.measure("fq_codel")
    trace.unlink()
    elsewhere = pickle.loads(packed)
    assert elsewhere.measure("fq_codel") == here
    assert elsewhere.with_values([("line.rtt", "50ms")]).measure("fq_codel")
