"""Disciplines that are written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Optional

from ._simnel import Packet


class Discipline(ABC):
    """A discipline for trying an idea: a class that is handed over where words could stand.

    ``simnel.simulate(line, traffic, qdisc=MyDiscipline)`` makes one for each direction, in front of
    the line. Times are simulated seconds. Each call costs microseconds, so a run takes several
    times as long as with a discipline of the core, and one core does the work of all threads.

    A class may also have ``next_event(now)``: the time at which ``dequeue`` may next give a packet,
    or None for not before another one comes. Without it, or if that time has come, a discipline
    that gives nothing although packets are queued is asked again after a millisecond.

    >>> class TailDrop(Discipline):
    ...     def __init__(self):
    ...         self.queue = collections.deque()
    ...     def enqueue(self, packet, now):
    ...         if len(self.queue) == 100:
    ...             return False
    ...         self.queue.append(packet)
    ...     def dequeue(self, now):
    ...         return self.queue.popleft() if self.queue else None
    """

    @abstractmethod
    def enqueue(self, packet: Packet, now: float) -> Optional[bool]:
        """Takes ``packet`` in; False refuses it. Any queued packet may be dropped or marked."""

    @abstractmethod
    def dequeue(self, now: float) -> Optional[Packet]:
        """The packet to send now; None: not yet. Those that it drops are not to be given later."""
