"""Many runs: a scenario over many settings, with repetitions, on all cores or on many machines."""

from __future__ import annotations

import inspect
import os
import re
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import fields
from decimal import Decimal
from itertools import islice, product
from numbers import Number
from operator import index
from queue import Empty, SimpleQueue
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from . import _simnel, cluster
from ._identity import code, identity, traces
from ._progress import watched
from ._simnel import Error, Stop, Table
from ._simulate import Scenario
from ._store import Store
from ._words import Line, Traffic

WAITING = 8192
"""Tasks that an executor has at once, at most: several for each core of a hundred machines."""

TICK = 1.0
"""Seconds without an end of a task after which whoever takes results gets none, to see the time."""

OF_LINE = {one.name for one in fields(Line)} - {"rtt"}
"""Keys of a sweep that are keys of a scenario's line."""

Job = Tuple[_simnel.Scenario, Any, int]
Point = Dict[str, Any]
Values = Dict[str, float]
"""A run's numbers."""


def geomspace(first: str, last: str, points: int) -> List[str]:
    """``points`` quantities from ``first`` to ``last`` with equal ratios, in the unit of ``first``.

    ``last`` may have another unit of the same kind, as ``"1s"`` after ``"10ms"``, and keeps it.
    Numbers without a unit, such as counts, are whole if both are written without a point.

    >>> geomspace("10ms", "1000ms", 3)
    ['10ms', '100ms', '1000ms']
    """
    form = r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*([a-zA-Z%/]*)"
    words = (word.strip() if isinstance(word, str) else "" for word in (first, last))
    begin, end = (re.fullmatch(form, word) for word in words)
    ratio = None if begin is None or end is None else _ratio(end[2], begin[2])
    if ratio is None or points < 1:
        raise Error(
            f"no range from `{first}` to `{last}`; "
            "expected two quantities of one kind, such as 10ms and 1s, and a number of points"
        )
    low, high, unit = float(begin[1]), float(end[1]) * ratio, begin[2]
    if not 0 < low <= high:
        raise Error(f"no range from `{first}` to `{last}`; expected two that rise from above zero")
    whole = not unit and "." not in begin[1] + end[1]
    numbers = [begin[1]]
    for n in range(1, points - 1):
        number = low * (high / low) ** (n / (points - 1))
        numbers.append(str(round(number)) if whole else f"{Decimal(f'{number:.6g}'):f}")
    steps = [f"{number}{unit}" for number in numbers]
    if points > 1:
        steps.append(end[1] + end[2])
    if whole and low < high and len(set(steps)) < points:
        raise Error(
            f"no {points} whole numbers from `{first}` to `{last}`; "
            f"expected fewer points, or `{first}.0` for fractions"
        )
    return steps


def _ratio(unit: str, other: str) -> Optional[float]:
    """How many ``other`` a ``unit`` is; None if they are of different kinds."""
    if unit == other:
        return 1.0
    (one, kind), (another, of) = (_simnel.quantity(f"1{word}") or (0, word) for word in (unit, other))
    return one / another if kind == of else None


def sweep(
    line: Union[Scenario, Line],
    traffic: Union[Traffic, Iterable[Traffic], None] = None,
    *,
    over: Mapping[str, Iterable[Any]],
    repetitions: int = 10,
    qdisc: Any = None,
    duration: Optional[str] = None,
    warmup: Optional[str] = None,
    executor: Any = None,
    batch: int = 1,
    to: Union[str, "os.PathLike[str]", None] = None,
    progress: bool = True,
) -> Any:
    """Every combination of the values in ``over``, each with the seeds 1 to ``repetitions``.

    Keys are those of ``simnel sweep`` (``"rtt"``, ``"rate"``, ``"qdisc"``, ``"traffic.bulk.count"``)
    and the fields of a ``Line``. The table has a row for each run: its setting, its ``seed``, and
    every number of its summary by its path (``groups.ping.application.added_ms.p99``); rows are in
    order, whoever did them.

    Runs are done by all cores, or by ``executor``: anything with the interface of
    ``concurrent.futures``, a client of ``dask.distributed``, or ``simnel.cluster.Ray()``. ``batch``
    runs are one task of it. Ctrl-C ends the sweep.

    With ``to``, a directory, rows go there as they come, into a data set of Parquet files (pyarrow),
    which is returned. The same sweep again does only the runs that are not yet there. Rows are in
    the order in which runs ended, with their number in the column ``run``.
    """
    # NumPy's, too, of which no table is made.
    repetitions, batch = index(repetitions), index(batch)
    if repetitions < 1:
        raise Error(f"{repetitions} repetitions; expected one or more")
    if batch < 1:
        raise Error(f"{batch} runs in a task; expected one or more")
    if not (executor is None or hasattr(executor, "submit")):
        what = type(executor).__name__
        raise Error(f"an object of `{what}` runs nothing; expected one that has submit, or None")
    scenario = Scenario.of(line, traffic, duration, warmup)
    over = dict(over)
    for key, values in over.items():
        # Its letters are not what was meant.
        if isinstance(values, str):
            raise Error(f"`{key}` has one value, {values!r}; expected a list: [{values!r}]")
    keys, axes = list(over), [list(values) for values in over.values()]
    for key, values in zip(keys, axes):
        if not values:
            raise Error(f"`{key}` has no values; expected one or more")
        _each_once(key, values)
    # Disciplines are handed over beside the scenario, and so after it.
    paths = [_path(key) for key in keys if key != "qdisc"]
    scenario._read.check_keys(paths + ["qdisc"] * ("qdisc" in keys))
    settings = [dict(zip(keys, values)) for values in product(*axes)]
    # What is wrong is refused before anything runs.
    made = _made(scenario, settings, qdisc)
    jobs: Iterator[Tuple[int, Job]] = enumerate(
        (read, words, seed + 1) for read, words in made for seed in range(repetitions)
    )
    total = len(settings) * repetitions

    def table(runs: Sequence[Tuple[int, Values]]) -> Table:
        return _table(settings, repetitions, runs)

    with ExitStack() as opened:
        told = opened.enter_context(watched(progress, total, "runs"))
        store = None
        if to is not None:
            sweep_is = _identity(scenario, settings, repetitions, made)
            store = opened.enter_context(closing(Store(to, sweep_is, table)))
            jobs = (one for one in jobs if one[0] not in store.known)
        done = len(store.known) if store else 0
        runs: List[Tuple[int, Values]] = []
        for some in opened.enter_context(closing(_results(jobs, executor, batch))):
            store.add(some) if store else runs.extend(some)
            done += len(some)
            if told and some:
                told(done)
    return store.dataset() if store else table(sorted(runs))


def _each_once(key: str, values: List[Any]) -> None:
    """Refuses a value that is there twice, and values that rows do not tell apart."""
    by_name: Dict[str, Any] = {}
    numbers: Set[Number] = set()
    for value in values:
        shown = _shown(value)
        # Only numbers are equal that look different: 1 and 1.0.
        is_number = isinstance(value, Number)
        if (is_number and value in numbers) or (shown in by_name and by_name[shown] == value):
            what = "is said twice; expected each value once, and repetitions"
            raise Error(f"`{key}={shown}` {what}")
        if shown in by_name:
            what = "stands for two values; expected some that rows tell apart"
            raise Error(f"`{key}={shown}` {what}")
        by_name[shown] = value
        if is_number:
            numbers.add(value)


def _made(
    scenario: Scenario, settings: List[Point], qdisc: Any
) -> List[Tuple[_simnel.Scenario, Any]]:
    """Each setting's scenario and discipline, understood."""
    made = []
    for point in settings:
        words = point.get("qdisc", qdisc)
        values = {_path(key): value for key, value in point.items() if key != "qdisc"}
        try:
            read = scenario.with_values(values)._read if values else scenario._read
            read.check(words)
        except Error as error:
            place = ", ".join(f"{key}={_shown(value)}" for key, value in point.items())
            raise Error(f"{error} (at {place})") from None
        made.append((read, words))
    return made


def _path(key: str) -> str:
    """The place in a scenario of a key of a sweep."""
    return "host" if key == "hosts" else f"line.{key}" if key in OF_LINE else key


def _measure(jobs: List[Job], stop: Optional[Stop] = None) -> List[Optional[Values]]:
    """Some runs, on whatever machine this is; None is one that was stopped."""
    return [read.measure(words, seed, stop) for read, words, seed in jobs]


class _Threads(ThreadPoolExecutor):
    """All cores of this machine."""

    def __init__(self) -> None:
        super().__init__(os.cpu_count())
        self._stop = Stop()

    def submit(self, work: Any, *arguments: Any) -> Any:  # type: ignore[override]
        return super().submit(work, *arguments, self._stop)

    def stop(self) -> None:
        """Ends the runs that have begun."""
        self._stop.set()


class _CtrlC:
    """Keeps the first Ctrl-C until it is asked for: in the midst of their code clusters' clients lose
    it, or never do anything again. The second comes at once, as ever.
    """

    def __init__(self, came: Callable[[], None]) -> None:
        self._tell = came
        self.came = False

    def __enter__(self) -> "_CtrlC":
        self._before = signal.getsignal(signal.SIGINT)
        # Other threads get none, and what is no function of Python's is not ours to call.
        if threading.current_thread() is threading.main_thread() and callable(self._before):
            signal.signal(signal.SIGINT, self._keep)
        return self

    def _keep(self, *_: Any) -> None:
        self.came = True
        self._restore()
        self._tell()

    def _restore(self) -> None:
        if signal.getsignal(signal.SIGINT) == self._keep:
            signal.signal(signal.SIGINT, self._before)

    def pass_on(self) -> None:
        """What Ctrl-C does without this, if it came."""
        if self.came:
            self.came = False
            # Not the signal once more: who reads `signal.set_wakeup_fd`, as asyncio does, had it.
            self._before(signal.SIGINT, inspect.currentframe())

    def __exit__(self, *_: Any) -> None:
        self._restore()
        self.pass_on()


def _results(
    jobs: Iterator[Tuple[int, Job]], executor: Any, batch: int
) -> Iterator[List[Tuple[int, Values]]]:
    """Numbers and values of each task's runs as it ends; nothing each ``TICK`` while none ends.

    Tasks are handed out as others end. On an error or Ctrl-C what has ended is given still, tasks
    that have begun end if they can be told, and those that wait are called back.
    """
    ended: SimpleQueue[Optional[Future[List[Optional[Values]]]]] = SimpleQueue()
    waiting: Dict[Future[List[Optional[Values]]], Tuple[int, ...]] = {}
    with ExitStack() as opened:
        ctrl_c = opened.enter_context(_CtrlC(lambda: ended.put(None)))
        if executor is None:
            executor = opened.enter_context(_Threads())
        elif hasattr(executor, "get_executor"):
            executor = cluster.Dask(executor)
        try:
            while True:
                while len(waiting) < WAITING and not ctrl_c.came:
                    part = list(islice(jobs, batch))
                    if not part:
                        break
                    numbers, work = zip(*part)
                    future = executor.submit(_measure, list(work))
                    waiting[future] = numbers
                    future.add_done_callback(ended.put)
                ctrl_c.pass_on()
                if not waiting:
                    return
                try:
                    future = ended.get(timeout=TICK)
                except Empty:
                    yield []
                    continue
                if future is not None:
                    yield _numbered(waiting.pop(future), future)
        # Not GeneratorExit: who takes results has an error itself.
        except (Exception, KeyboardInterrupt, SystemExit):
            done = [one for one in waiting if one.done() and not one.cancelled()]
            for future in (one for one in done if one.exception() is None):
                with suppress(Error):
                    yield _numbered(waiting.pop(future), future)
            raise
        finally:
            try:
                # First: an executor forgets what it runs for a future that was called back. What
                # the caller is to learn is why the sweep ends.
                if waiting and hasattr(executor, "stop"):
                    with suppress(Exception):
                        executor.stop()
            finally:
                for future in waiting:
                    future.cancel()


def _numbered(
    numbers: Sequence[int], future: "Future[List[Optional[Values]]]"
) -> List[Tuple[int, Values]]:
    """What came of a task's runs."""
    runs = [(number, one) for number, one in zip(numbers, future.result()) if one is not None]
    if len(runs) < len(numbers):
        raise Error(
            "a run was stopped by another sweep of the same executor; "
            "expected an executor for each sweep"
        )
    return runs


def _shown(value: Any) -> str:
    """A value in a table: of a discipline's class the name."""
    return str(getattr(value, "__name__", value))


def _identity(
    scenario: Scenario,
    settings: List[Point],
    repetitions: int,
    made: List[Tuple[_simnel.Scenario, Any]],
) -> str:
    """What tells this sweep from all others."""
    shown = [{key: _shown(value) for key, value in point.items()} for point in settings]
    disciplines = {id(own): own for _, own in made}.values()
    codes = [own if isinstance(own, str) else code(own) for own in disciplines]
    files = traces({id(read): read for read, _ in made}.values())
    return identity([_simnel.__version__, scenario.toml, shown, int(repetitions), codes, files])


def _table(
    settings: List[Point], repetitions: int, runs: Sequence[Tuple[int, Values]]
) -> Table:
    """A row for each run."""
    points = [settings[number // repetitions] for number, _ in runs]
    columns: Dict[str, List[Any]] = {
        key: [_shown(point[key]) for point in points] for key in settings[0]
    }
    columns["seed"] = [number % repetitions + 1 for number, _ in runs]
    for name in dict.fromkeys(name for _, values in runs for name in values):
        columns[name] = [values.get(name) for _, values in runs]
    return Table(columns)
