"""Single runs: the command line's figures, errors in its words, Ctrl-C."""

import json
import subprocess
import threading

import pytest

import simnel
from conftest import ROOT
from simnel import _simnel

ENDLESS = "100000s"


@pytest.mark.parametrize("words", ["cake bandwidth {rate}", "fq_codel", None])
def test_figures_are_those_of_the_command_line(command, words):
    path = ROOT / "scenarios/upload.toml"
    arguments = ["--qdisc", words] if words else []
    said = subprocess.run(
        [command, "sim", str(path), "--seed", "3", "--json", *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    run = simnel.Scenario.from_file(path).run(words, seed=3)
    assert run.json + "\n" == said, "is target/debug/simnel of this source?"
    assert run.hash == json.loads(said)["hash"]


def test_the_same_seed_gives_the_same_run(upload):
    one, two, other = (upload.run("pie", seed=seed) for seed in (1, 1, 2))
    assert one.json == two.json and one.hash != other.hash
    again = simnel.Scenario(upload.toml, upload.name)
    assert again.run("pie", seed=1).json == one.json


def test_cake_keeps_a_call_clear(upload):
    fifo, cake = upload.run(), upload.run("cake bandwidth {rate}")
    assert cake.qdisc == ("cake bandwidth 3mbit", "cake bandwidth 20mbit")
    assert cake.latency.quantile(0.99) < 30 < fifo.latency.quantile(0.99)
    assert cake.names == ["backup", "call up", "call down"]
    assert cake["call up"]["application"]["mos"] > 4
    assert "backup" in cake and "film" not in cake and list(cake) == cake.names


def test_latency_is_that_of_probes_then_of_datagrams_then_of_all(line, upload):
    probed = simnel.simulate(line, [simnel.ping(), simnel.call()], duration="2s", warmup="0s")
    assert "round-trip" in probed.latency.what and len(probed.latency) == 20
    assert "one-way" in probed.latency_of("call up").what
    alone = simnel.simulate(line, simnel.bulk(), duration="2s", warmup="0s")
    assert alone.latency.what == alone.sojourn().what == "time in the disciplines"
    run = upload.run()
    times = run["backup"]["sojourn_ms"]
    # The summary's is of one direction, this one has acknowledgements too.
    assert len(run.sojourn("backup")) > times["n"]
    added = run["call up"]["application"]["added_ms"]
    latency = run.latency_of("call up")
    assert (len(latency), latency.mean, latency.max) == (added["n"], added["mean"], added["max"])
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        assert latency.quantile(share) == added[name]
    assert latency.min <= latency.quantile(0) <= latency.quantile(1) <= latency.max


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda line: simnel.simulate(line, qdisc="caek"), "did you mean `cake`"),
        (lambda line: simnel.simulate(simnel.Line("20mbi", "3mbit")), "line 6, column 8"),
        (lambda line: simnel.simulate(line, simnel.bulk(cc="cubik")), '"cubic"'),
        (lambda line: simnel.simulate(line, simnel.bulk(colour=1)), "colour"),
        (lambda line: simnel.simulate(line, simnel.bulk(name=object())), "cannot stand"),
        (lambda line: simnel.simulate(line, []), "no traffic"),
        (lambda line: simnel.simulate(line, "bulk"), "'bulk' is no traffic; expected"),
        (lambda line: simnel.simulate("20mbit"), "'20mbit' is no line; expected"),
        (lambda line: simnel.simulate(simnel.Line("1mbit", "1mbit", change=["2s"])), "'2s' is no table"),
        (lambda line: simnel.simulate(simnel.Line("1mbit", "1mbit", hosts=["tv"])), "'tv' is no table"),
        (lambda line: simnel.simulate(line, duration="1s", warmup="2s"), "nothing is left"),
        (lambda line: simnel.Scenario("duration = 3"), "expected"),
        (lambda line: simnel.Scenario.from_file("/nowhere.toml"), "/nowhere.toml"),
        (lambda line: simnel.simulate(line, qdisc="cake bandwidth 20"), "did you mean `20mbit`"),
        (lambda line: simnel.simulate(line, seed=-1), "-1 cannot be used; expected a whole number"),
        (lambda line: simnel.simulate(line, seed=2**64), "expected a whole number, 0 to 2.64 - 1"),
        (lambda line: simnel.simulate(line).latency.quantile(2), "0 to 1"),
        (lambda line: simnel.simulate(line)["film"], "no traffic `film`"),
        (lambda line: simnel.simulate(line).latency_of("film"), "no traffic `film`"),
        (lambda line: simnel.simulate(line).series["film"], "no column `film`"),
    ],
)
def test_errors_name_the_fault_and_the_fix(line, make, said):
    with pytest.raises(simnel.Error, match=said.replace("`", ".")):
        make(line)
    assert issubclass(simnel.Error, ValueError)


def test_words_of_any_kind_survive_the_text(line):
    name = 'a "film"\\ of\tünïcode \x7f 😀'
    run = simnel.simulate(line, simnel.bulk(name=name), duration="1s", warmup="0s")
    assert run.names == [name]
    jitter = simnel.Line("20mbit", "3mbit", jitter={"up": "3ms"}, loss="0.1%", framing="docsis")
    assert simnel.simulate(jitter, simnel.ping(), duration="1s", warmup="0s").latency.mean > 0
    late = simnel.Line("20mbit", "3mbit", reorder={"down": "50% by 9ms"})
    assert simnel.simulate(late, simnel.ping(), duration="1s", warmup="0s").latency.mean > 3


@pytest.mark.parametrize("some", [lambda one: [one], lambda one: one])
def test_lines_change_and_have_hosts(some):
    line = simnel.Line(
        down="20mbit",
        up="3mbit",
        change=some({"at": "1s", "down": "2mbit"}),
        hosts=some({"name": "tv", "side": "home", "rate": "100mbit"}),
    )
    traffic = simnel.bulk(home="tv", delayed_ack=False)
    run = simnel.simulate(line, traffic, duration="4s", warmup="2s", interval="1s")
    assert run["bulk"]["goodput_mbps"] < 2


def test_traffic_may_come_one_by_one(line):
    traffic = (make() for make in (simnel.bulk, simnel.ping))
    assert simnel.simulate(line, traffic, duration="1s", warmup="0s").names == ["bulk", "ping"]


@pytest.mark.parametrize(
    "given",
    [{"traffic": simnel.bulk(64)}, {"duration": "9s"}, {"warmup": "0s"}, {"interval": "1s"}],
)
def test_what_a_scenario_has_itself_is_not_said_beside_it(upload, given):
    with pytest.raises(simnel.Error, match=f"has its own {next(iter(given))}; expected a Line"):
        simnel.simulate(upload, **given)


def test_values_are_lists_and_tables_too(line):
    scenario = simnel.Scenario.of(line, simnel.ping(), duration="2s", warmup="0s")
    other = scenario.with_values(
        {
            "line.loss": {"up": "100%"},
            "line.change": [{"at": "1s", "down": "1mbit"}],
            "traffic.ping.dscp": ["EF"],
            "traffic.ping.name": "[a] name",
        }
    )
    assert other.run().names == ["[a] name"] and len(other.run().latency) == 0
    assert "1mbit" in other.toml
    with pytest.raises(TypeError):
        scenario.with_values(None)


def test_ctrl_c_ends_a_run(line, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
        simnel.simulate(line, duration=ENDLESS, interval="1s")


def test_an_error_in_progress_ends_a_run(upload):
    def fail(steps):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        upload._read.run(None, 1, fail)


def test_other_threads_go_on_meanwhile(line):
    stop, results = simnel._simnel.Stop(), []
    endless = simnel.Scenario.of(line, duration=ENDLESS, interval="1s")._read
    thread = threading.Thread(target=lambda: results.append(endless.measure(None, 1, stop)))
    thread.start()
    stop.set()
    thread.join()
    assert results == [None] and stop.is_set()


def test_progress_is_told(upload):
    told = []
    upload._read.run(None, 1, told.append)
    assert told == sorted(told) and told[-1] == _simnel.Scenario.STEPS
    assert upload.run(progress=True).json == upload.run().json


def test_without_a_standard_error_nobody_is_told(upload, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert upload.run(progress=True).json == upload.run().json
