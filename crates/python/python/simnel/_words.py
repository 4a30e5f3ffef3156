"""A line and its traffic as a scenario's text (scenarios/README.md describes every key)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Mapping, Optional, Sequence, Union

from ._simnel import Error

Directed = Union[str, Mapping[str, str]]
"""One value for both directions, or ``{"up": ..., "down": ...}``."""


def toml(value: Any) -> str:
    """A value as TOML. Strings are JSON's, whose escapes TOML shares."""
    # NumPy's, too, whose own words name their type: `bool_` before version 2.
    if type(value).__name__ in ("bool", "bool_"):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    raise Error(f"{value!r} cannot stand in a scenario; expected words, a number or a list of them")


def table(head: str, values: Mapping[str, Any]) -> str:
    """A table of a TOML file; what is None is left out."""
    if not isinstance(values, Mapping):
        raise Error(f"{values!r} is no table for {head}; expected keys and values: {{...: ...}}")
    known = ((key.replace("_", "-"), one) for key, one in values.items() if one is not None)
    return "".join([f"\n{head}\n", *(f"{key} = {toml(one)}\n" for key, one in known)])


@dataclass(frozen=True)
class Line:
    """A home's line to the Internet.

    Rates are words such as ``"20mbit"``, or ``"unlimited"``; ``rtt`` is the base round-trip time.
    ``framing`` is what a packet occupies on the line (``"docsis"``, ``"overhead 34 atm"``), ``loss``
    a share (``"0.1%"``), ``jitter`` the longest additional delay, ``reorder`` a share that others
    overtake (``"1% by 10ms"``); the last three for both directions or ``{"up": ..., "down": ...}``.
    ``change`` has new rates: ``{"at": "10s", "up": "1mbit"}``, or a list of such.
    ``hosts`` are the scenario's ``[[host]]`` tables.
    """

    down: str
    up: str
    rtt: str = "50ms"
    framing: Optional[str] = None
    shaper: Optional[str] = None
    burst: Optional[Union[str, int]] = None
    loss: Optional[Directed] = None
    jitter: Optional[Directed] = None
    change: Union[Mapping[str, str], Sequence[Mapping[str, str]]] = ()
    hosts: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]] = ()
    reorder: Optional[Directed] = None

    def toml(self) -> str:
        """The line's part of a scenario."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        lists = [("[[line.change]]", own.pop("change")), ("[[host]]", own.pop("hosts"))]
        parts = [table("[line]", own)]
        for head, some in lists:
            several = [some] if isinstance(some, Mapping) else some
            parts += [table(head, one) for one in several]
        return "".join(parts)


@dataclass(frozen=True)
class Traffic:
    """A kind of traffic with a scenario's keys; ``-`` in a key may be ``_``."""

    kind: str
    keys: Mapping[str, Any] = field(default_factory=dict)

    def toml(self) -> str:
        """A ``[[traffic]]`` table."""
        return table("[[traffic]]", {"kind": self.kind, **self.keys})


def bulk(count: int = 1, direction: str = "down", **keys: Any) -> Traffic:
    """``count`` TCP transfers (each way with ``direction="both"``), endless unless a ``size`` is given.

    ``cc`` names the congestion control (``"cubic"``, ``"reno"``, ``"bbr"``, ``"ledbat"``,
    ``"dctcp"``), ``ecn`` switches marks on.
    """
    return Traffic("bulk", {"count": count, "direction": direction, **keys})


def call(count: int = 1, codec: str = "g711", **keys: Any) -> Traffic:
    """Calls: 50 RTP packets a second each way. Results tell delay (ms), loss and MOS."""
    return Traffic("voip", {"name": "call", "count": count, "codec": codec, **keys})


def ping(interval: str = "100ms", **keys: Any) -> Traffic:
    """Probes that are answered at once. Results tell the round-trip time that queues add (ms)."""
    return Traffic("ping", {"interval": interval, **keys})


def game(count: int = 1, **keys: Any) -> Traffic:
    """A game's updates: 60 datagrams of 128 bytes a second, each way."""
    own = {"name": "game", "count": count, "direction": "both", "size": 128, "rate": "61440bit"}
    return Traffic("cbr", {**own, **keys})


def requests(count: int = 1, **keys: Any) -> Traffic:
    """UDP requests, each when the one before was answered (netperf's UDP_RR)."""
    return Traffic("rr", {"name": "requests", "count": count, **keys})


def video(count: int = 1, **keys: Any) -> Traffic:
    """Films whose rate follows the throughput (DASH). Results tell rates and stalls."""
    return Traffic("dash", {"name": "video", "count": count, **keys})


def browsing(rate: Union[float, str] = 1, **keys: Any) -> Traffic:
    """Connections of a browser, ``rate`` a second. Results tell page load times (ms)."""
    return Traffic("web", {"name": "browsing", "rate": rate, **keys})


def swarm(count: int = 20, **keys: Any) -> Traffic:
    """A BitTorrent swarm: LEDBAT both ways, marked as background."""
    return Traffic("bittorrent", {"name": "swarm", "count": count, **keys})


def messages(count: int = 1, interval: str = "400ms", **keys: Any) -> Traffic:
    """Small messages over TCP. Results tell their latency (ms)."""
    return Traffic("iot", {"name": "messages", "count": count, "interval": interval, **keys})


def bursts(count: int = 1, size: Union[int, str] = 1_000_000, **keys: Any) -> Traffic:
    """Transfers of ``size`` bytes with idle gaps, over one connection each."""
    return Traffic("bursts", {"count": count, "size": size, **keys})


def datagrams(rate: str, size: int = 1250, direction: str = "up", **keys: Any) -> Traffic:
    """Datagrams at a constant rate; ``size`` is their UDP payload in bytes."""
    return Traffic("cbr", {"rate": rate, "size": size, "direction": direction, **keys})
