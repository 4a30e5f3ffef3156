"""An environment for agents that set a discipline's parameters (gymnasium's interface).

>>> from simnel import Line, Scenario
>>> scenario = Scenario.of(Line(down="20mbit", up="3mbit", rtt="90ms"))
>>> env = TuneEnv(scenario, lambda action: f"codel target {action[0]:.0f}us interval 100ms",
...               low=[500], high=[50_000])

Each step the action becomes words, which change the running discipline as ``simnel change`` does,
and the line is simulated for the step's time. The environment is deterministic: the same seed and
actions give the same observations, to the last bit.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from . import _simnel
from ._simnel import Error
from ._simulate import Scenario

try:
    import gymnasium
    import numpy as np
except ImportError as error:
    raise Error("simnel.gym needs gymnasium; expected `pip install gymnasium`") from error

OBSERVED = ("mbps", "backlog_kb", "rtt_ms", "drops_per_s", "marks_per_s")
"""What an observation holds, of the step that it ends."""


def power(seen: Dict[str, float]) -> float:
    """Logarithm of the line's power, throughput over round-trip time (Kleinrock 1979)."""
    return math.log(max(seen["mbps"], 0.01)) - math.log(max(seen["rtt_ms"], 0.01))


class TuneEnv(gymnasium.Env):
    """An episode is a run of ``scenario``, which needs a ``ping`` to tell delays by.

    ``words`` makes the discipline's words of an action, an array between ``low`` and ``high``. They
    must stay words of one discipline, which has to be able to change them while it runs, and are
    complete: no ``{rate}``.
    ``direction`` is the one whose discipline is set, and that is observed; the other one keeps the
    words of the first action, which is the middle between ``low`` and ``high``. ``reward`` makes a
    number of what was seen, a dictionary of ``OBSERVED``; ``step_s`` is in seconds.
    """

    metadata: Dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        words: Callable[[Any], str],
        low: Sequence[float],
        high: Sequence[float],
        direction: str = "down",
        step_s: float = 0.1,
        reward: Callable[[Dict[str, float]], float] = power,
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise Error(f"{scenario!r} is no scenario; expected a Scenario, such as Scenario.of(line)")
        if not 1e-9 <= step_s <= 1e6:
            raise Error(f"{step_s} s is no step; expected a nanosecond or more, and at most 1e6 s")
        self._low, self._high = (np.asarray(bound, np.float32) for bound in (low, high))
        self.action_space = gymnasium.spaces.Box(self._low, self._high, dtype=np.float32)
        self.observation_space = gymnasium.spaces.Box(0.0, math.inf, (len(OBSERVED),), np.float64)
        self._scenario, self._words, self._reward = scenario, words, reward
        self._direction, self._step_s = direction, step_s
        self._start()

    def _start(self, seed: int = 1) -> None:
        words = self._words((self._low + self._high) / 2)
        if "{rate}" in words:
            raise Error(f"`{words}` is no change of a run; expected a rate in place of {{rate}}")
        self._session = _simnel.Session(self._scenario._read, words, seed)
        if not self._session.has_pings:
            raise Error("this scenario has no `ping`; expected one, for delays to be told by")
        self._before, self._since = self._session.counters(self._direction), 0.0
        self._rtt_ms = 0.0

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None
    ) -> Tuple[Any, Dict[str, Any]]:
        """A new run: with ``seed``, or without one with the next that the environment draws."""
        super().reset(seed=seed)
        self._start(int(self.np_random.integers(2**32)))
        return self._observe()

    def step(self, action: Any) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        """Sets what the action says, and simulates a step."""
        self._session.configure(self._direction, self._words(np.asarray(action, np.float64)))
        self._session.advance(self._step_s)
        observation, seen = self._observe()
        return observation, self._reward(seen), False, self._session.is_over, seen

    def _observe(self) -> Tuple[Any, Dict[str, float]]:
        now, before = self._session.counters(self._direction), self._before
        # The last step may be a shorter one. To the nanosecond, as the simulator's clock is.
        time = self._session.now
        seconds = round(time - self._since, 9) or self._step_s
        self._before, self._since = now, time
        grown = {key: now[key] - before[key] for key in ("sent_bytes", "drops", "marks")}
        answers = [rtt for _, rtt in self._session.answers()]
        # While nothing is answered, the last answers stand.
        self._rtt_ms = sum(answers) / len(answers) if answers else self._rtt_ms
        values = (
            grown["sent_bytes"] * 8e-6 / seconds,
            now["backlog_bytes"] / 1000,
            self._rtt_ms,
            grown["drops"] / seconds,
            grown["marks"] / seconds,
        )
        seen = dict(zip(OBSERVED, values))
        return np.array(values, np.float64), seen
