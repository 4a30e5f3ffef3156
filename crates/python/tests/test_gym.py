"""The environment: gymnasium's rules, determinism, and settings that take effect."""

import math
import re
import runpy

import pytest

import simnel
from conftest import ROOT

gymnasium = pytest.importorskip("gymnasium")
np = pytest.importorskip("numpy")

from gymnasium.utils.env_checker import check_env

from simnel.gym import OBSERVED, TuneEnv


def words(action):
    return f"codel target {action[0]:.0f}us interval 100ms limit 1000"


@pytest.fixture
def env(line):
    traffic = [simnel.bulk(8), simnel.ping("20ms")]
    scenario = simnel.Scenario.of(line, traffic, duration="8s", warmup="0s")
    return TuneEnv(scenario, words, [500], [50_000])


def episode(env, action, seed=1):
    env.reset(seed=seed)
    rows, over = [], False
    while not over:
        observation, reward, ended, over, _ = env.step(np.array([action]))
        assert not ended
        rows.append([*observation, reward])
    return np.array(rows)


def test_it_keeps_gymnasium_s_rules(env):
    check_env(env, skip_render_check=True)


def test_equal_seeds_and_actions_give_equal_episodes(env):
    one, two = episode(env, 5000.0), episode(env, 5000.0)
    assert len(one) == 80 and (one == two).all()


def test_what_an_agent_sets_takes_effect(env):
    rtt = OBSERVED.index("rtt_ms")
    short, long = (episode(env, target)[40:, rtt].mean() for target in (500.0, 50_000.0))
    assert 90 <= short < long


def test_actions_within_a_run_take_effect(env):
    env.reset(seed=1)
    run = [env.step(np.array([50_000.0 if n < 40 else 500.0]))[4] for n in range(80)]
    before, after = run[20:40], run[60:80]
    assert sum(seen["drops_per_s"] for seen in after) > 0
    assert max(seen["rtt_ms"] for seen in after) < min(seen["rtt_ms"] for seen in before)


def test_a_last_step_that_is_shorter_has_its_own_time(line):
    traffic = [simnel.datagrams("1mbit", direction="down"), simnel.ping("20ms")]
    scenario = simnel.Scenario.of(line, traffic, duration="3s", warmup="0s")
    env = TuneEnv(scenario, words, [500], [50_000], step_s=0.8)
    env.reset(seed=1)
    rates = [env.step(np.array([5000.0]))[4]["mbps"] for _ in range(4)]
    assert env._session.is_over
    # It has 0.6 s. The rate is constant, up to a packet at either end.
    assert rates[3] == pytest.approx(rates[2], rel=0.03)


def test_what_cannot_be_is_refused(line, env):
    silent = simnel.Scenario.of(line, simnel.bulk())
    with pytest.raises(simnel.Error, match="ping"):
        TuneEnv(silent, words, [1], [2])
    with pytest.raises(simnel.Error, match="is no scenario; expected a Scenario"):
        TuneEnv(line, words, [1], [2])
    for step_s in (0, 1e-12, -1, math.nan, math.inf):
        with pytest.raises(simnel.Error, match="no step"):
            TuneEnv(env._scenario, words, [1], [2], step_s=step_s)
    with pytest.raises(simnel.Error, match="in place of {rate}"):
        TuneEnv(env._scenario, lambda action: "cake bandwidth {rate}", [1], [2])
    env.reset(seed=1)
    with pytest.raises(simnel.Error, match="another discipline"):
        env._session.configure("down", "pie")
    with pytest.raises(simnel.Error, match="up or down"):
        env._session.configure("left", "codel")
    with pytest.raises(simnel.Error, match="no step"):
        env._session.advance(float("nan"))


def test_the_example_of_speed_counts_steps(capsys):
    runpy.run_path(str(ROOT / "crates/python/examples/speed.py"))["main"](least_s=0.1)
    steps, seconds = re.findall(r"[\d,]+(?= steps| simulated)", capsys.readouterr().out)
    assert int(steps.replace(",", "")) > int(seconds.replace(",", "")) > 0


def test_the_example_learns_what_holds_on_other_seeds():
    pytest.importorskip("cma")
    example = runpy.run_path(str(ROOT / "crates/python/examples/learn_codel.py"))
    value, defaults, unseen = example["value"], example["DEFAULTS"], range(101, 106)
    fixed = [value(lambda _: defaults, seed) for seed in unseen]
    assert len(set(fixed)) == len(fixed), "each seed is another episode"
    policy = example["learn"](range(1, 3), generations=3)
    learnt = [value(policy, seed) for seed in unseen]
    assert learnt == [value(policy, seed) for seed in unseen]
    assert all(after > before for before, after in zip(fixed, learnt))
