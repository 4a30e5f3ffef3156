"""An agent learns when CoDel should be strict, on a line whose rate changes.

    pip install simnel gymnasium cma
    python learn_codel.py

The policy is small: target and interval follow, each on a logarithmic scale, a line in the round-trip
time and the backlog that the last step showed. CMA-ES (Hansen) looks for its six numbers; an
episode's value is the mean reward, the logarithm of throughput over round-trip time. What was
learnt is compared with CoDel's defaults on seeds that the search has not seen; a seed says when
each of the four transfers starts.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import cma
import numpy as np

import simnel
from simnel.gym import OBSERVED, TuneEnv

TARGET_US, INTERVAL_US = (500.0, 50_000.0), (10_000.0, 500_000.0)
DEFAULTS = np.array([5_000.0, 100_000.0])

LINE = simnel.Line(
    down="20mbit",
    up="3mbit",
    rtt="40ms",
    change=[{"at": f"{at}s", "down": f"{rate}mbit"} for at, rate in [(5, 4), (10, 20), (15, 2)]],
)
TRAFFIC = [simnel.bulk(4, stagger="4s"), simnel.ping("20ms")]
SCENARIO = simnel.Scenario.of(LINE, TRAFFIC, duration="20s", warmup="0s")


def words(action):
    return f"codel target {action[0]:.0f}us interval {action[1]:.0f}us limit 1000"


def value(policy, seed):
    """The mean reward of an episode."""
    bounds = list(zip(TARGET_US, INTERVAL_US))
    env = TuneEnv(SCENARIO, words, *bounds)
    observation, _ = env.reset(seed=seed)
    rewards, over = [], False
    while not over:
        observation, reward, _, over, _ = env.step(policy(observation))
        rewards.append(reward)
    return float(np.mean(rewards))


def follows(numbers):
    """The policy of six numbers."""
    low, high = (np.log(one) for one in zip(TARGET_US, INTERVAL_US))

    def policy(observation):
        seen = dict(zip(OBSERVED, observation))
        features = [1, math.log1p(seen["rtt_ms"]) - 4, math.log1p(seen["backlog_kb"]) - 3]
        return np.exp(np.clip(np.log(DEFAULTS) + np.reshape(numbers, (2, 3)) @ features, low, high))

    return policy


def mean(policy, seeds):
    """The mean value over ``seeds``."""
    with ThreadPoolExecutor() as threads:
        return float(np.mean(list(threads.map(lambda seed: value(policy, seed), seeds))))


def learn(seeds, generations):
    """The best policy of a search on ``seeds``."""
    search = cma.CMAEvolutionStrategy(
        [0.0] * 6, 0.5, {"seed": 1, "maxiter": generations, "verbose": -9}
    )
    while not search.stop():
        asked = search.ask()
        search.tell(asked, [-mean(follows(numbers), seeds) for numbers in asked])
    return follows(search.result.xbest)


def main():
    policy, unseen = learn(range(1, 4), generations=20), range(101, 111)
    fixed, learnt = mean(lambda _: DEFAULTS, unseen), mean(policy, unseen)
    gain = math.expm1(learnt - fixed)
    print(f"defaults {fixed:.3f}, learnt {learnt:.3f}: {gain:.0%} more throughput over delay")


if __name__ == "__main__":
    main()
