"""Queue management on home lines, simulated: CAKE and the disciplines that CAKE is measured against.

>>> import simnel
>>> line = simnel.Line(down="20mbit", up="3mbit", rtt="90ms")
>>> run = simnel.simulate(line, [simnel.bulk(2, "up"), simnel.call()], qdisc="cake bandwidth {rate}")
>>> round(run.latency.quantile(0.99), 1)
4.7

Rates, times and sizes are words as `tc` writes them (``"20mbit"``, ``"90ms"``, ``"64kb"``), and so
are disciplines; ``{rate}`` stands for the line's rate. Results are in milliseconds and Mbit/s. The
same scenario and seed give the same result, to the last bit, here and by ``simnel sim``.
"""

from ._comparison import Comparison, compare
from ._discipline import Discipline
from ._looks import looks
from ._paper import Paper, paper, papers
from ._replay import Replay, replay
from ._result import Result
from ._simnel import Distribution, Error, Packet, Table, __version__
from ._simulate import Scenario, simulate
from ._sweep import geomspace, sweep
from ._words import (
    Line,
    Traffic,
    browsing,
    bulk,
    bursts,
    call,
    datagrams,
    game,
    messages,
    ping,
    requests,
    swarm,
    video,
)

__all__ = [
    "Comparison",
    "Discipline",
    "Distribution",
    "Error",
    "Line",
    "Packet",
    "Paper",
    "Replay",
    "Result",
    "Scenario",
    "Table",
    "Traffic",
    "__version__",
    "browsing",
    "bulk",
    "bursts",
    "call",
    "compare",
    "datagrams",
    "game",
    "geomspace",
    "looks",
    "messages",
    "paper",
    "papers",
    "ping",
    "replay",
    "requests",
    "simulate",
    "swarm",
    "sweep",
    "video",
]
