"""Sweeps on other machines: Ctrl-C ends what has begun, and of two workers one is killed on the way.

In this order: whoever was killed may be long in coming back.
"""

import asyncio
import os
import signal
import threading
import time

import pytest

import simnel
from simnel import cluster

OVER = {"rtt": ["10ms", "100ms"], "qdisc": ["cake bandwidth {rate}", "fq_codel"]}


class Deadly:
    """An executor that kills a worker after half of the runs have been handed out."""

    def __init__(self, executor, worker):
        self.executor, self.worker, self.handed_out = executor, worker, 0

    def submit(self, work, *arguments):
        self.handed_out += 1
        if self.handed_out == 20:
            os.kill(self.worker, signal.SIGKILL)
        return self.executor.submit(work, *arguments)


def with_a_worker_less(line, executor, worker):
    def sweep(**other):
        return simnel.sweep(line, over=OVER, duration="8s", progress=False, **other)

    deadly = Deadly(executor, worker)
    table = sweep(executor=deadly)
    assert deadly.handed_out == len(table) == 40
    assert len(set(zip(table["rtt"], table["qdisc"], table["seed"]))) == 40, "each run once"
    assert table.to_dict() == sweep().to_dict(), "the same as on this machine's threads"


def stopped(line, executor, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
        simnel.sweep(line, over=OVER, duration="100000s", progress=False, executor=executor)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR"
    ) as local, distributed.Client(local) as client:
        yield client


def test_ctrl_c_ends_what_dask_has_begun(line, client, ctrl_c):
    stopped(line, client, ctrl_c)
    # Both are free again: with what had begun they would be busy for hours.
    assert [client.submit(pow, 2, n).result(timeout=30) for n in range(4)] == [1, 2, 4, 8]


def test_a_worker_that_cannot_stop_is_not_the_caller_s_error(client, monkeypatch):
    def dies(name):
        raise ConnectionError("the worker is dead")

    monkeypatch.setattr(cluster, "_stop", dies)
    cluster.Dask(client).stop()


def test_a_worker_that_does_not_answer_holds_up_nobody(client, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.1)
    frozen = next(iter(client.run(os.getpid).values()))
    os.kill(frozen, signal.SIGSTOP)
    try:
        stopping = threading.Thread(target=cluster.Dask(client).stop, daemon=True)
        stopping.start()
        stopping.join(timeout=30)
        assert not stopping.is_alive()
    finally:
        os.kill(frozen, signal.SIGCONT)
    assert client.submit(pow, 2, 3).result(timeout=30) == 8


def test_dask_does_without_a_worker(line, client):
    workers = client.run(os.getpid)
    assert len(set(workers.values())) == 2
    with_a_worker_less(line, cluster.Dask(client), next(iter(workers.values())))


def test_a_result_that_came_counts_though_its_worker_died_then(client, monkeypatch):
    gather = client._gather

    async def and_die(tasks, **other):
        results = await gather(tasks, **other)
        for task in tasks:
            client._handle_lost_data(task.key)
        return results

    monkeypatch.setattr(client, "_gather", and_die)
    future = cluster.Dask(client).submit(lambda number, stop: number, 7)
    assert future.result(timeout=30) == 7


def test_who_is_called_back_takes_no_other_along(client, monkeypatch):
    fetch = client._gather_remote
    fetching = threading.Event()

    async def slowly(*arguments):
        fetching.set()
        await asyncio.sleep(0.5)
        return await fetch(*arguments)

    monkeypatch.setattr(client, "_gather_remote", slowly)
    called_back = cluster.Dask(client).submit(lambda stop: 7)
    assert fetching.wait(30)
    called_back.cancel()
    monkeypatch.undo()
    assert client.submit(pow, 2, 3).result(timeout=30) == 8


def test_an_asynchronous_client_is_refused_where_its_loop_runs(line, client):
    def sweep(own):
        over = {"rtt": ["10ms"]}
        return simnel.sweep(
            line, over=over, repetitions=2, warmup="0s", progress=False, executor=own
        )

    async def program():
        distributed = pytest.importorskip("distributed")
        address = client.scheduler.address
        async with distributed.Client(address, asynchronous=True) as own:
            with pytest.raises(simnel.Error, match="asynchronous client"):
                sweep(own)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, sweep, own)

    assert len(asyncio.run(program())) == 2


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def test_ctrl_c_ends_what_ray_has_begun(line, ray, ctrl_c):
    executor = cluster.Ray()
    stopped(line, executor, ctrl_c)
    assert executor.submit(pow, 2, 3).result(timeout=30) == 8


def test_ray_does_without_a_worker(line, ray):
    executor = cluster.Ray()

    def who(_):
        time.sleep(0.5)
        return os.getpid()

    workers = set()
    # One may be slow to start, and the other does its work meanwhile.
    for _ in range(60):
        workers |= {future.result() for future in [executor.submit(who, n) for n in range(2)]}
        if len(workers) == 2:
            break
    assert len(workers) == 2
    with_a_worker_less(line, executor, workers.pop())
