"""How fast the environment for agents is, on this machine: steps and simulated time a second, one core.

    pip install simnel gymnasium
    python speed.py
"""

import time

import numpy as np

import simnel
from simnel.gym import TuneEnv

LINE = simnel.Line(down="20mbit", up="3mbit", rtt="90ms")


def main(least_s=3.0):
    """Measures for ``least_s`` of processor time, at least."""
    scenario = simnel.Scenario.of(LINE, [simnel.bulk(8), simnel.ping("20ms")], duration="60s")
    env = TuneEnv(
        scenario,
        lambda action: f"codel target {action[0]:.0f}us interval 100ms",
        low=[500],
        high=[50_000],
    )
    actions, steps, seed, over = np.array([[5_000.0], [20_000.0]]), 0, 0, True
    began = time.process_time()
    while (used := time.process_time() - began) < least_s:
        if over:
            seed += 1
            env.reset(seed=seed)
        over = env.step(actions[steps % 2])[3]
        steps += 1
    print(f"{steps / used:,.0f} steps of 0.1 s a second: {steps / used * 0.1:,.0f} simulated seconds")


if __name__ == "__main__":
    main()
