"""Comparisons and replays: the command line's answers."""

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
    assert compared.verdict[-1].startswith("Verdict: `cake bandwidth {rate}` on this line")
    assert all(sentence in said for sentence in compared.verdict)
    page = compared._repr_html_()
    assert "<table>" in page and "pfifo limit 1000" in page
    assert len(compared.table) == 22 and str(compared).endswith(compared.verdict[-1])


def test_a_comparison_needs_two_and_a_line(line):
    for wrong in ((), ("cake",), ("cake", "fq_codel"), ("cake", line)):
        with pytest.raises(simnel.Error, match="two disciplines"):
            simnel.compare(*wrong)
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
