"""The published experiments, run again and judged."""

from __future__ import annotations

from html import escape
from typing import Any, Dict, List, Optional, Tuple

from . import _simnel
from ._progress import watched
from ._simnel import Table
from ._simulate import Scenario


class Paper:
    """An experiment of a paper after its runs: what the paper states beside what was simulated."""

    def __init__(self, id: str, about: Dict[str, Any], done: Dict[str, Any]) -> None:
        self.id = id
        """Letter of the paper and number."""
        self.paper: str = about["paper"]
        """The paper."""
        self.title: str = about["title"]
        """The experiment in one line."""
        self.question: str = about["question"]
        """The question that it answers."""
        self.setup: str = about["setup"]
        """The conditions, in words."""
        self.claims: Table = done["claims"]
        """A row for each measure of each claim: ``stated`` by the paper, simulated ``mean`` and half
        the 95 % interval, and whether the claim ``holds`` (``yes``, ``no``; None: not measured)."""
        self.figures: List[Tuple[str, str]] = done["figures"]
        """The lab's figures: title and SVG."""
        self._scenarios = about["scenarios"]

    @property
    def scenarios(self) -> Dict[str, Scenario]:
        """The scenarios by arm, to be run and changed; arms without a network have none."""
        return {name: Scenario(text, name) for name, text in self._scenarios if text is not None}

    def to_polars(self) -> Any:
        """``claims`` as a data frame of polars."""
        return self.claims.to_polars()

    def __repr__(self) -> str:
        verdicts = dict(zip(self.claims["id"], self.claims["holds"]))
        held = sum(holds == "yes" for holds in verdicts.values())
        return f"<simnel.Paper {self.id}, {self.title}: {held} of {len(verdicts)} claims hold>"

    def _repr_html_(self) -> str:
        rows = self.claims.to_dict()
        claims: Dict[str, Tuple[str, str, str]] = {}
        for id, claim, stated, holds in zip(*(rows[k] for k in ("id", "claim", "stated", "holds"))):
            claims[id] = (claim, stated, holds or "not measured")
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in (id, *cells)) + "</tr>"
            for id, cells in claims.items()
        )
        drawings = "".join(f"<p>{escape(title)}</p>{svg}" for title, svg in self.figures)
        return (
            f"<h3>{escape(self.id)}: {escape(self.title)}</h3><p>{escape(self.question)}</p>"
            "<table><thead><tr><th></th><th>claim</th><th>stated</th><th>holds</th></tr></thead>"
            f"<tbody>{body}</tbody></table>{drawings}"
        )


def papers() -> List[str]:
    """Identifiers of the experiments, as ``simnel paper`` lists them."""
    return _simnel.papers()


def paper(id: str, repetitions: Optional[int] = None, progress: bool = True) -> Paper:
    """An experiment of a paper, as ``simnel paper`` runs and judges it.

    Without ``repetitions``: as many as the paper has. In a notebook the result draws itself. Ctrl-C
    ends it.
    """
    if repetitions is not None and repetitions < 1:
        raise _simnel.Error(f"{repetitions} repetitions; expected one or more")
    about = _simnel.about_paper(id)
    with watched(progress, _simnel.paper_runs(id, repetitions), "runs") as told:
        return Paper(id.upper(), about, _simnel.paper(id, repetitions, told))
