"""Scenarios and single runs."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Sequence, Union

from . import _simnel
from ._progress import watched
from ._result import Result
from ._words import Line, Traffic, bulk, ping, toml

MIXED = (bulk(4, "both", stagger="200ms"), ping())
"""Traffic where none is named: four uploads, four downloads and a probe."""


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
        traffic: Union[Traffic, Sequence[Traffic], None] = None,
        duration: str = "30s",
        warmup: str = "5s",
        interval: str = "200ms",
    ) -> "Scenario":
        """A line with its traffic. Results count from ``warmup`` on; series step by ``interval``."""
        if isinstance(line, Scenario):
            return line
        if not isinstance(line, Line):
            raise _simnel.Error(f"{line!r} is no line; expected a Line or a Scenario")
        several = MIXED if traffic is None else traffic
        several = [several] if isinstance(several, (Traffic, str)) else several
        strangers = [one for one in several if not isinstance(one, Traffic)]
        if strangers:
            raise _simnel.Error(f"{strangers[0]!r} is no traffic; expected what bulk(), call() … give")
        top = {"duration": duration, "warmup": warmup, "interval": interval}
        head = "".join(f"{key} = {toml(value)}\n" for key, value in top.items())
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
        words = [(key, one if isinstance(one, str) else toml(one)) for key, one in values.items()]
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
    traffic: Union[Traffic, Sequence[Traffic], None] = None,
    qdisc: Optional[_simnel.Choice] = None,
    seed: int = 1,
    duration: str = "30s",
    warmup: str = "5s",
    interval: str = "200ms",
    progress: bool = False,
) -> Result:
    """One run of a line with its traffic, or of a scenario.

    Without traffic: four uploads, four downloads and a probe. Without ``qdisc``: a scenario's own,
    or a FIFO of 1000 packets; it may be the class of a ``Discipline``. The interpreter is free meanwhile, and Ctrl-C ends the run.
    """
    scenario = Scenario.of(line, traffic, duration, warmup, interval)
    return scenario.run(qdisc, seed, progress)
