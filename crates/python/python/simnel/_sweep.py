"""Many runs: a scenario over many settings, with repetitions, on all cores or on many machines."""

from __future__ import annotations

import os
import re
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import fields
from itertools import islice, product
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import _simnel
from ._progress import watched
from ._simnel import Error, Stop, Table
from ._simulate import Scenario
from ._words import Line, Traffic

WAITING = 256
"""Runs that an executor has at once, at least; what waits beyond that is not yet made."""

Job = Tuple[_simnel.Scenario, Any, int]
Point = Dict[str, Any]
Values = Optional[Dict[str, float]]
"""A run's numbers; None if it was stopped."""


def geomspace(first: str, last: str, points: int) -> List[str]:
    """``points`` quantities from ``first`` to ``last`` with equal ratios, in the unit of ``first``.

    >>> geomspace("10ms", "1000ms", 3)
    ['10ms', '100ms', '1000ms']
    """
    form = r"([0-9.]+)\s*([a-zA-Z%/]*)"
    begin, end = (re.fullmatch(form, word.strip()) for word in (first, last))
    if begin is None or end is None or begin[2] != end[2] or points < 1:
        raise Error(
            f"no range from `{first}` to `{last}`; "
            "expected two quantities of one unit, such as 10ms and 500ms, and a number of points"
        )
    low, high, unit = float(begin[1]), float(end[1]), begin[2]
    if not 0 < low <= high:
        raise Error(f"no range from `{first}` to `{last}`; expected two that rise from above zero")
    shares = (n / max(points - 1, 1) for n in range(points))
    return [f"{float(f'{low * (high / low) ** share:.6g}'):g}{unit}" for share in shares]


def sweep(
    line: Union[Scenario, Line],
    traffic: Union[Traffic, Sequence[Traffic], None] = None,
    *,
    over: Mapping[str, Sequence[Any]],
    repetitions: int = 10,
    qdisc: Any = None,
    duration: str = "30s",
    warmup: str = "5s",
    executor: Optional[Executor] = None,
    progress: bool = True,
) -> Table:
    """Every combination of the values in ``over``, each with the seeds 1 to ``repetitions``.

    Keys are those of ``simnel sweep`` (``"rtt"``, ``"rate"``, ``"qdisc"``, ``"traffic.bulk.count"``)
    and the fields of a ``Line``. The table has a row for each run: its setting, its ``seed``, and
    every number of its summary by its path (``groups.ping.application.added_ms.p99``); rows are in
    order, whoever did them.

    Runs are done by all cores, or by ``executor``: anything with the interface of
    ``concurrent.futures``. Ctrl-C ends it.
    """
    if repetitions < 1:
        raise Error(f"{repetitions} repetitions; expected one or more")
    scenario = Scenario.of(line, traffic, duration, warmup)
    keys, axes = list(over), [list(values) for values in over.values()]
    empty = [key for key, values in over.items() if not list(values)]
    if empty:
        raise Error(f"`{empty[0]}` has no values; expected one or more")
    settings = [dict(zip(keys, values)) for values in product(*axes)]
    # What is wrong is refused before anything runs.
    jobs = _jobs(scenario, settings, repetitions, qdisc)
    total = len(settings) * repetitions
    rows: List[Values] = [None] * total
    with watched(progress, total, "runs") as told:
        for done, (number, values) in enumerate(_results(jobs, executor), 1):
            rows[number] = values
            if told:
                told(done)
    return _table(settings, repetitions, rows)


def _jobs(
    scenario: Scenario, settings: List[Point], repetitions: int, qdisc: Any
) -> Iterator[Job]:
    """All runs. Every setting is understood before the first is handed out."""
    own = {one.name for one in fields(Line)}
    made = []
    for point in settings:
        words = point.get("qdisc", qdisc)
        values = {
            f"line.{key}" if key in own and key != "rtt" else key: value
            for key, value in point.items()
            if key != "qdisc"
        }
        try:
            read = scenario.with_values(values)._read if values else scenario._read
            read.check(words)
        except Error as error:
            place = ", ".join(f"{key}={_shown(value)}" for key, value in point.items())
            raise Error(f"{error} (at {place})") from None
        made.append((read, words))
    return ((read, words, seed + 1) for read, words in made for seed in range(repetitions))


def _measure(read: _simnel.Scenario, words: Any, seed: int) -> Values:
    """One run, on whatever machine this is."""
    return read.measure(words, seed)


def _results(
    jobs: Iterator[Job], executor: Optional[Executor]
) -> Iterator[Tuple[int, Values]]:
    """Each run's number and values, as they come."""
    if executor is not None:
        yield from _collected(jobs, executor, _measure)
        return
    stop = Stop()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        try:
            yield from _collected(
                jobs, threads, lambda read, words, seed: read.measure(words, seed, stop)
            )
        except BaseException:
            stop.set()
            raise


def _collected(
    jobs: Iterator[Job], executor: Executor, measure: Callable[..., Values]
) -> Iterator[Tuple[int, Values]]:
    """Hands out runs as others end; on an error or Ctrl-C those that wait are called back."""
    numbered = enumerate(jobs)
    waiting: Dict[Future[Values], int] = {}
    try:
        while True:
            for number, job in islice(numbered, WAITING - len(waiting)):
                waiting[executor.submit(measure, *job)] = number
            if not waiting:
                return
            done: Set[Future[Values]] = wait(waiting, return_when=FIRST_COMPLETED).done
            for future in done:
                yield waiting.pop(future), future.result()
    finally:
        for future in waiting:
            future.cancel()


def _shown(value: Any) -> str:
    """A value in a table: of a discipline's class the name."""
    return str(getattr(value, "__name__", value))


def _table(settings: List[Point], repetitions: int, rows: List[Values]) -> Table:
    """A row for each run."""
    columns: Dict[str, List[Any]] = {}
    for key in settings[0] if settings else ():
        columns[key] = [_shown(point[key]) for point in settings for _ in range(repetitions)]
    columns["seed"] = [seed + 1 for _ in settings for seed in range(repetitions)]
    names = dict.fromkeys(name for row in rows if row for name in row)
    for name in names:
        columns[name] = [float(row[name]) if row and name in row else None for row in rows]
    return Table(columns)
