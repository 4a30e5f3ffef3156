"""Captures through disciplines."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Union

from . import _simnel
from ._progress import watched


class Replay:
    """What a discipline would have done with a capture."""

    def __init__(self, text: str) -> None:
        self.json = text
        """The summary, byte by byte what ``simnel replay --json`` prints."""

    @property
    def summary(self) -> Dict[str, Any]:
        """Packets, drops, marks, time in the discipline (ns), shares of flows and hosts."""
        summary: Dict[str, Any] = json.loads(self.json)
        return summary

    def __repr__(self) -> str:
        own = self.summary
        times = own["sojourn_ns"]
        p99 = f"p99 {times['p99'] / 1e6:.3f} ms" if times else "none sent"
        return (
            f"<simnel.Replay: `{own['qdisc']}`, {own['packets']} packets, {own['dropped']} dropped, "
            f"{p99}>"
        )


def replay(
    path: Union[str, "os.PathLike[str]"],
    qdisc: str,
    rate: Optional[str] = None,
    seed: int = 1,
    top: int = 10,
    progress: bool = True,
) -> Replay:
    """The packets of a capture (pcap, pcapng, or a recording's CSV) through a discipline.

    ``rate`` is the line behind a discipline that does not shape itself; without one the line takes
    every packet at once, and no queue builds. ``top`` flows and hosts are told by name.
    """
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    with watched(progress, size, "B") as told:
        return Replay(_simnel.replay(path, qdisc, rate, seed, top, told))
