"""Figures by matplotlib, which is imported only when one is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict

from ._looks import looks
from ._simnel import Error

if TYPE_CHECKING:
    from ._result import Result


def pyplot() -> Any:
    """matplotlib's pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise Error("figures need matplotlib; expected `pip install matplotlib`") from error
    return plt


def result(run: "Result") -> Any:
    """Goodput of each kind of traffic over time, and the distribution of the latency."""
    plt = pyplot()
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
    rows = run.series.to_dict()
    goodput: Dict[str, Dict[float, float]] = {}
    for name, time, mbps in zip(rows["name"], rows["time_s"], rows["goodput_mbps"]):
        over_time = goodput.setdefault(name, {})
        over_time[time] = over_time.get(time, 0.0) + (mbps or 0.0)
    for name, over_time in goodput.items():
        above.plot(list(over_time), list(over_time.values()), label=name)
    above.set(xlabel="time (s)", ylabel="goodput (Mbit/s)", ylim=(0, None))
    above.legend()
    latency = run.latency
    points = latency.cdf()
    disciplines = list(dict.fromkeys(run.qdisc))
    look = looks(disciplines)[disciplines[0]]
    below.step(points["ms"], points["share"], where="post", **look)
    below.set(xlabel=f"{latency.what} (ms)", ylabel="share not above", ylim=(0, 1))
    positive = any(value > 0 for value in points["ms"])
    below.set_xscale("log" if positive else "linear")
    figure.suptitle(" / ".join(disciplines))
    return figure
