"""What all tests share; and a line for each test that could not run here, for scripts/test.sh."""

import os
import signal
import threading
from pathlib import Path

import pytest

import simnel

ROOT = Path(__file__).resolve().parents[3]


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"NOT RUN: {report.nodeid}: {reason}")


@pytest.fixture
def line():
    return simnel.Line(down="20mbit", up="3mbit", rtt="90ms")


@pytest.fixture
def upload(line):
    """Seconds of a call beside an upload."""
    traffic = [simnel.bulk(1, "up", name="backup"), simnel.call()]
    return simnel.Scenario.of(line, traffic, duration="6s", warmup="1s")


@pytest.fixture
def command():
    """The command line, as `cargo test` has built it."""
    program = ROOT / "target/debug/simnel"
    if not os.access(program, os.X_OK):
        pytest.skip("no target/debug/simnel: `cargo test` builds it")
    return str(program)


@pytest.fixture
def ctrl_c():
    """Ctrl-C, soon after the last call; nothing is left of it when the test ends."""
    main = threading.main_thread().ident
    timers = []

    def soon():
        for timer in timers:
            timer.cancel()
        timers.append(threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT]))
        timers[-1].start()

    # A shell has its background jobs ignore it, and they have their children do so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield soon
    for timer in timers:
        timer.cancel()
        timer.join()
    signal.signal(signal.SIGINT, before)
