"""Results as tables: Arrow without copies into polars, pyarrow and pandas; figures."""

import pickle

import pytest

import simnel


def test_series_go_into_every_reader(upload):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    run = upload.run("fq_codel")
    series = run.series
    frame = run.to_polars()
    assert isinstance(frame, polars.DataFrame) and frame.columns == series.columns
    assert frame.to_dict(as_series=False) == series.to_dict()
    assert frame.schema["cwnd"] == polars.Int64 and frame["cwnd"].null_count() == len(frame)
    assert polars.DataFrame(run).equals(frame)
    table = pyarrow.table(run)
    assert table.equals(run.to_arrow()) and table.num_rows == len(series)
    pytest.importorskip("pandas")
    assert list(run.to_pandas()["name"]) == series["name"]
    duckdb = pytest.importorskip("duckdb")
    assert [name for (name,) in duckdb.sql("select name from run").fetchall()] == series["name"]


def test_series_add_up_to_the_summary(line):
    run = simnel.simulate(line, duration="4s", warmup="0s")
    rows = run.series.to_dict()
    for name in run.names:
        mbps = [m for n, m in zip(rows["name"], rows["goodput_mbps"]) if n == name and m]
        whole = run[name]["goodput_mbps"]
        assert abs(sum(mbps) * 0.2 / 4 - whole) <= whole * 0.06
    flows = run.flows
    assert len(flows) == 9 and sum(flows["lost"]) == 0
    assert len(run.lines) == 2 * 20


def test_windows_are_in_the_series(upload):
    run = simnel.Scenario("windows = true\n" + upload.toml).run()
    assert max(cwnd for cwnd in run.series["cwnd"] if cwnd is not None) >= 10


def test_a_distribution_s_table_ends_at_one(upload):
    points = upload.run().latency.cdf()
    assert points["share"][-1] == 1 and points["ms"] == sorted(points["ms"])


def test_tables_are_made_of_columns_and_travel():
    table = simnel.Table({"a": [1, None], "b": [0.5, 2], "c": ["x", None]})
    assert table.to_dict() == {"a": [1, None], "b": [0.5, 2.0], "c": ["x", None]}
    assert pickle.loads(pickle.dumps(table)).to_dict() == table.to_dict()
    assert repr(table) == "<simnel.Table: 2 rows, 3 columns: a, b, c>"
    assert list(table) == ["a", "b", "c"] and "b" in table and "d" not in table
    with pytest.raises(simnel.Error):
        simnel.Table({"a": [1], "b": [1, 2]})


def test_what_cannot_travel_names_what_can(upload):
    run = upload.run()
    for what, instead in [(run, "scenario, qdisc and seed"), (run.latency, r"cdf\(\)")]:
        with pytest.raises(TypeError, match=f"stays in its process; .*{instead}"):
            pickle.dumps(what)
    for part in (run.json, run.summary, run.latency.cdf()):
        pickle.dumps(part)
    scenario = pickle.loads(pickle.dumps(run.scenario))
    assert scenario.run(run.qdisc[0], run.seed).hash == run.hash


def test_the_last_interval_ends_with_the_run(line):
    run = simnel.simulate(line, simnel.bulk(1, "down"), duration="2500ms", warmup="0s", interval="1s")
    rows, lines = run.series.to_dict(), run.lines.to_dict()
    rates = rows["goodput_mbps"]
    assert len(rates) == 3 and run["bulk"]["series_mbps"] == rates
    whole = run["bulk"]["goodput_mbps"] * 2.5
    assert abs(rates[0] + rates[1] + rates[2] / 2 - whole) < 1e-6
    down = [m for d, m in zip(lines["direction"], lines["mbps"]) if d == "down"]
    # A rate over its own half second, not half of it.
    assert len(down) == 3 and down[2] > 0.9 * down[1]


def test_a_run_draws_itself(upload, tmp_path):
    pytest.importorskip("matplotlib")
    figure = upload.run("cake bandwidth {rate}").plot()
    figure.savefig(tmp_path / "run.png")
    assert [axes.get_xlabel() for axes in figure.axes][0] == "time (s)"
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_disciplines_look_different_and_everywhere_the_same():
    names = ["cake", "fq_codel", "cake diffserv8", "a thing of one's own", "cake"]
    looks = simnel.looks(names)
    assert list(looks) == names[:4]
    without_colour = {(look["linestyle"], look["marker"]) for look in looks.values()}
    assert len(without_colour) == 4
    # The discipline owns the colour, with whatever words.
    assert looks["cake"]["color"] == looks["cake diffserv8"]["color"] != looks["fq_codel"]["color"]
    assert simnel.looks(["fq_codel"])["fq_codel"] == looks["fq_codel"]
    assert simnel.looks("fq_codel") == simnel.looks(["fq_codel"]), "one is not its letters"


def test_matplotlib_knows_every_look():
    lines = pytest.importorskip("matplotlib.lines")
    # As many as have each marker and dash.
    for look in simnel.looks(str(n) for n in range(512)).values():
        lines.Line2D([0, 1], [0, 1], **look)
