"""Scenarios and single runs."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Optional, Union

from . import _simnel
from ._progress import watched
from ._result import Result
from ._words import Line, Traffic, bulk, ping, toml

MIXED = (bulk(4, "both", stagger="200ms"), ping())
"""Traffic where none is named: four uploads, four downloads and a probe."""

USUAL = {"duration": "30s", "warmup": "5s", "interval": "200ms"}
"""Times where none are named."""


class Scenario:
    """A scenario: a line, disciplines, hosts and traffic, as a TOML text that has been understood.

    ``directory`` is where the files are that the text names.
    """

    def __init__(
        self,
        text: str,
        name: str = "scenario",
        directory: Optional[Union[str, "os.PathLike[str]"]] = None,
    ) -> None:
        self._read = _simnel.Scenario(text, name, directory)

    @classmethod
    def _of(cls, read: _simnel.Scenario) -> "Scenario":
        scenario = cls.__new__(cls)
        scenario._read = read
        return scenario

    @classmethod
    def from_file(cls, path: Union[str, "os.PathLike[str]"]) -> "Scenario":
        """The scenario of a file, as ``simnel sim FILE`` reads it."""
        return cls._of(_simnel.Scenario.from_file(path))

    @classmethod
    def of(
        cls,
        line: Union["Scenario", Line],
        traffic: Union[Traffic, Iterable[Traffic], None] = None,
        duration: Optional[str] = None,
        warmup: Optional[str] = None,
        interval: Optional[str] = None,
    ) -> "Scenario":
        """A line with its traffic, for 30 s unless a ``duration`` is given. Results count from
        ``warmup`` (5 s) on; series step by ``interval`` (200 ms). A scenario has all of these itself.
        """
        top = {"duration": duration, "warmup": warmup, "interval": interval}
        if isinstance(line, Scenario):
            given = {"traffic": traffic, **top}
            twice = [key for key, value in given.items() if value is not None]
            if twice:
                raise _simnel.Error(
                    f"{line!r} has its own {twice[0]}; expected a Line beside it, "
                    "or the scenario's with_values()"
                )
            return line
        if not isinstance(line, Line):
            raise _simnel.Error(f"{line!r} is no line; expected a Line or a Scenario")
        several = MIXED if traffic is None else traffic
        several = [several] if isinstance(several, (Traffic, str)) else list(several)
        strangers = [one for one in several if not isinstance(one, Traffic)]
        if strangers:
            raise _simnel.Error(f"{strangers[0]!r} is no traffic; expected what bulk(), call() … give")
        chosen = {key: USUAL[key] if value is None else value for key, value in top.items()}
        head = "".join(f"{key} = {toml(value)}\n" for key, value in chosen.items())
        return cls(head + line.toml() + "".join(one.toml() for one in several), "line")

    @property
    def name(self) -> str:
        """Its name in reports."""
        return self._read.name

    @property
    def question(self) -> str:
        """The question that it answers; empty if it does not say."""
        return self._read.question

    @property
    def toml(self) -> str:
        """Its text, which ``simnel sim`` takes as a file."""
        return self._read.text

    def with_values(self, values: Mapping[str, Any]) -> "Scenario":
        """The same with other values: ``{"line.rtt": "20ms", "traffic.bulk.count": 8}``."""
        every = dict(values).items()
        words = [(key, one if isinstance(one, str) else toml(one)) for key, one in every]
        return Scenario._of(self._read.with_values(words))

    def run(
        self,
        qdisc: Optional[_simnel.Choice] = None,
        seed: int = 1,
        progress: bool = False,
    ) -> Result:
        """One run, with its own disciplines or with ``qdisc`` in both directions: words, or the
        class of a ``Discipline``.
        """
        with watched(progress, _simnel.Scenario.STEPS, "simulated") as told:
            return Result(self._read.run(qdisc, seed, told), self)

    def __repr__(self) -> str:
        return f"<simnel.Scenario: {self.name}>"


def simulate(
    line: Union[Scenario, Line],
    traffic: Union[Traffic, Iterable[Traffic], None] = None,
    qdisc: Optional[_simnel.Choice] = None,
    seed: int = 1,
    duration: Optional[str] = None,
    warmup: Optional[str] = None,
    interval: Optional[str] = None,
    progress: bool = False,
) -> Result:
    """One run of a line with its traffic, or of a scenario.

    Without traffic: four uploads, four downloads and a probe. Without ``qdisc``: a scenario's own,
    or a FIFO of 1000 packets; it may be the class of a ``Discipline``. A line is simulated for 30 s
    unless a ``duration`` is given, of which results count from ``warmup`` (5 s) on; series step by
    ``interval`` (200 ms). The interpreter is free meanwhile, and Ctrl-C ends the run.
    """
    scenario = Scenario.of(line, traffic, duration, warmup, interval)
    return scenario.run(qdisc, seed, progress)
