"""Comparisons and replays: the command line's answers."""

import json
import subprocess

import pytest

import simnel
from conftest import ROOT

GOLDEN = ROOT / "conformance/golden"


def test_a_comparison_says_what_the_command_says(command, line):
    words = ["cake bandwidth {rate}", "pfifo limit 1000"]
    compared = simnel.compare(*words, line, repetitions=1, progress=False)
    options = ["--line", "20mbit/3mbit", "--rtt", "90ms", "--repetitions", "1"]
    said = subprocess.run(
        [command, "compare", *words, *options, "--report", "/dev/null"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "one run each: `cake bandwidth {rate}` on this line" in compared.verdict[-1]
    assert all(sentence in said for sentence in compared.verdict)
    page = compared._repr_html_()
    assert "<table>" in page and "<code>pfifo limit 1000</code>" in page and "`" not in page
    assert len(compared.table) == 22 and str(compared).endswith(compared.verdict[-1])


def test_a_comparison_needs_two_and_a_line(line):
    for wrong in ((), ("cake",), ("cake", "fq_codel"), ("cake", line)):
        with pytest.raises(simnel.Error, match="two disciplines"):
            simnel.compare(*wrong)
    own = type("Own", (simnel.Discipline,), {})
    with pytest.raises(simnel.Error, match=r"in simulate\(\), sweep\(\)"):
        simnel.compare("cake", own, line)
    with pytest.raises(simnel.Error, match="caek"):
        simnel.compare("caek", "fq_codel", line)
    with pytest.raises(simnel.Error, match="these only"):
        simnel.compare("cake", "fq_codel", simnel.Line("20mbit", "3mbit", framing="docsis"))


@pytest.mark.parametrize("words, rate", [("fq_codel", "5mbit"), ("cake bandwidth 5mbit", None)])
def test_a_replay_is_that_of_the_command_line(command, words, rate):
    path = GOLDEN / "cake-cobalt/ingress-steady.csv.gz"
    options = ["--rate", rate] if rate else []
    said = subprocess.run(
        [command, "replay", str(path), "--qdisc", words, "--json", *options],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    replayed = simnel.replay(path, words, rate=rate, progress=False)
    assert replayed.json + "\n" == said
    assert replayed.summary["packets"] > 0 and words in repr(replayed)


def test_wrong_captures_are_named():
    with pytest.raises(simnel.Error, match="/nowhere"):
        simnel.replay("/nowhere.pcap", "fq_codel")
    with pytest.raises(simnel.Error, match="no rate"):
        simnel.replay("/nowhere.pcap", "fq_codel", rate="fast")
    with pytest.raises(simnel.Error, match="caek"):
        simnel.replay("/nowhere.pcap", "caek")


def test_a_paper_is_judged_as_the_command_judges_it(command):
    said = subprocess.run(
        [command, "paper", "A3", "--repetitions", "1", "--json"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    claims = {one["id"]: one for one in map(json.loads, said.splitlines())}
    done = simnel.paper("a3", repetitions=1, progress=False)
    rows = done.claims.to_dict()
    assert set(rows["id"]) == set(claims) and done.id == "A3"
    for n, claim in enumerate(rows["id"]):
        assert claims[claim]["holds"] == {"yes": True, "no": False, None: None}[rows["holds"][n]]
        simulated = claims[claim]["simulated"]
        if not isinstance(simulated, dict):
            assert rows["mean"][n] == simulated
    page = done._repr_html_()
    assert "<svg" in page and done.question in page and "claims hold" in repr(done)
    first = next(iter(done.scenarios.values()))
    assert simnel.Scenario(first.toml).run().names


def test_papers_have_names():
    assert "A3" in simnel.papers()
    with pytest.raises(simnel.Error, match="one of A1"):
        simnel.paper("Z9")
    with pytest.raises(simnel.Error, match="0 repetitions"):
        simnel.paper("A3", repetitions=0)
