"""What a run showed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from . import _simnel
from ._simnel import Distribution, Table

if TYPE_CHECKING:
    from ._simulate import Scenario


class Result:
    """One run: distributions, tables, and the summary that ``simnel sim --json`` prints."""

    def __init__(self, run: _simnel.Run, scenario: "Scenario") -> None:
        self._run = run
        self.scenario = scenario
        """The scenario."""

    @property
    def json(self) -> str:
        """The summary, byte by byte what ``simnel sim --json`` prints."""
        return self._run.json

    @property
    def summary(self) -> Dict[str, Any]:
        """The summary: ``lines`` and ``groups`` with rates (Mbit/s), times (ms), drops and marks."""
        summary: Dict[str, Any] = json.loads(self._run.json)
        return summary

    @property
    def names(self) -> List[str]:
        """The names of the traffic."""
        return self._run.names

    @property
    def qdisc(self) -> Tuple[str, str]:
        """The disciplines' words, up and down."""
        return self._run.qdisc

    @property
    def seed(self) -> int:
        """The seed."""
        return self._run.seed

    @property
    def hash(self) -> str:
        """Hash of all that happened to every packet: equal runs have equal hashes."""
        return self._run.hash

    @property
    def latency(self) -> Distribution:
        """What queues added, in ms: to the round trips of probes; without probes, one way to calls
        and games; without these, the time of all packets in the disciplines. ``what`` tells which.
        """
        return self._run.latency()

    def latency_of(self, name: str) -> Distribution:
        """The same of one kind of traffic, by its name."""
        return self._run.latency(name)

    def sojourn(self, name: Optional[str] = None) -> Distribution:
        """Time in the disciplines in ms, of all traffic or of one kind."""
        return self._run.sojourn(name)

    def __getitem__(self, name: str) -> Dict[str, Any]:
        """The summary of one kind of traffic, by its name."""
        groups: Dict[str, Dict[str, Any]] = {group["name"]: group for group in self.summary["groups"]}
        if name not in groups:
            names = ", ".join(groups)
            raise _simnel.Error(f"there is no traffic `{name}`; expected one of {names}")
        return groups[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the traffic. Without this Python would ask for the traffic `0`."""
        return iter(self.names)

    @property
    def series(self) -> Table:
        """A row for each flow and interval: ``time_s``, ``name``, ``direction``, ``flow``,
        ``goodput_mbps``; of probes and datagrams ``added_ms`` (mean) and ``added_most_ms``; where a
        scenario asks for ``windows``, ``cwnd`` (segments) and ``srtt_ms``.
        """
        return self._run.series()

    @property
    def flows(self) -> Table:
        """A row for each flow: goodput (Mbit/s), drops, marks, losses, completion (s)."""
        return self._run.flow_table()

    @property
    def lines(self) -> Table:
        """A row for each line and interval: Mbit/s of Ethernet frames."""
        return self._run.line_table()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.series.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """``series`` as a table of pyarrow."""
        return self.series.to_arrow()

    def to_polars(self) -> Any:
        """``series`` as a data frame of polars."""
        return self.series.to_polars()

    def to_pandas(self) -> Any:
        """``series`` as a data frame of pandas; needs pyarrow."""
        return self.series.to_pandas()

    def plot(self) -> Any:
        """A figure of matplotlib: goodput over time, and the distribution of ``latency``."""
        from ._plot import result

        return result(self)

    def __repr__(self) -> str:
        return repr(self._run)
