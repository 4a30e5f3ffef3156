"""Disciplines compared on one line."""

from __future__ import annotations

import re
from html import escape
from typing import Any, Dict, List, Tuple, Union

from . import _simnel
from ._discipline import Discipline
from ._progress import watched
from ._simnel import Error, Table
from ._words import Line


class Comparison:
    """What differs between disciplines by more than chance, and by an amount that is felt."""

    def __init__(self, verdict: List[str], table: Table) -> None:
        self.verdict = verdict
        """The verdict, sentence by sentence."""
        self.table = table
        """A row for each measure and discipline, with the mean and half the 95 % interval."""

    def to_polars(self) -> Any:
        """``table`` as a data frame of polars."""
        return self.table.to_polars()

    def to_pandas(self) -> Any:
        """``table`` as a data frame of pandas; needs pyarrow."""
        return self.table.to_pandas()

    def __str__(self) -> str:
        return "\n".join(self.verdict)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = self.table.to_dict()
        contenders = list(dict.fromkeys(rows["qdisc"]))
        measures: Dict[Tuple[str, str], Dict[str, str]] = {}
        for workload, measure, qdisc, shown in zip(
            *(rows[key] for key in ("workload", "measure", "qdisc", "shown"))
        ):
            measures.setdefault((workload, measure), {})[qdisc] = shown or ""
        head = "".join(f"<th>{escape(name)}</th>" for name in contenders)
        body = "".join(
            f"<tr><td>{escape(workload)}</td><td>{escape(measure)}</td>"
            + "".join(f"<td>{escape(values.get(name, ''))}</td>" for name in contenders)
            + "</tr>"
            for (workload, measure), values in measures.items()
        )
        *sentences, last = (_marked(sentence) for sentence in self.verdict)
        said = "".join(f"<li>{sentence}</li>" for sentence in sentences)
        return (
            f"<p><strong>{last}</strong></p><ul>{said}</ul>"
            f"<table><thead><tr><th>workload</th><th>measure</th>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


def _marked(sentence: str) -> str:
    """A sentence as HTML, in which a discipline's words have a type of their own."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(sentence))


def compare(
    *qdiscs_and_line: Union[str, Line], repetitions: int = 5, progress: bool = True
) -> Comparison:
    """Disciplines on a line, under four workloads of a home, as ``simnel compare`` does it.

    ``compare("cake bandwidth {rate}", "fq_codel", line)``. Of the line, rates and RTT count. In a
    notebook the result draws itself. Ctrl-C ends it.
    """
    if any(isinstance(one, type) and issubclass(one, Discipline) for one in qdiscs_and_line):
        raise Error(
            "disciplines in Python are not compared; "
            "expected tc's words here, and such a class in simulate(), sweep() or Scenario.run()"
        )
    qdiscs = [words for words in qdiscs_and_line if isinstance(words, str)]
    line = qdiscs_and_line[-1] if qdiscs_and_line else None
    if len(qdiscs) < 2 or not isinstance(line, Line) or len(qdiscs_and_line) > len(qdiscs) + 1:
        raise Error("nothing to compare; expected two disciplines or more, and a line")
    if any(value for name, value in vars(line).items() if name not in ("down", "up", "rtt")):
        raise Error("this line has more than rates and a round-trip time; expected these only")
    if repetitions < 1:
        raise Error(f"{repetitions} repetitions; expected one or more")
    with watched(progress, _simnel.compare_runs(qdiscs, repetitions), "runs") as told:
        verdict, table = _simnel.compare(
            qdiscs, line.down, line.up, line.rtt, repetitions, told
        )
    return Comparison(verdict, table)
