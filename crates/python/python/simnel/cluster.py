"""Executors for ``simnel.sweep`` on many machines, which can also end runs that have begun.

What a dead machine had is done by another; each run is in the table once. A machine needs this
package and the cluster's own, and no files.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future, wait
from typing import Any, Callable, Dict
from uuid import uuid4

from ._simnel import Error, Stop

__all__ = ["Dask", "Ray"]

PATIENCE = 5.0
"""Seconds that workers have to say that they stop. One that is frozen does not answer."""

_stops: Dict[str, Stop] = {}
"""On a worker: switches of the executors whose tasks it has."""


def _switch(name: str) -> Stop:
    return _stops.setdefault(name, Stop())


def _stoppable(name: str, work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments, _switch(name))


def _stop(name: str) -> None:
    _switch(name).set()


class Dask(Executor):
    """Workers of a client of ``dask.distributed``, which ``simnel.sweep`` takes itself, too."""

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise Error(
                "an asynchronous client cannot wait for runs; expected one that was made without "
                "`asynchronous=True`, or asyncio.to_thread(simnel.sweep, …)"
            )
        self._client = client
        self._name = uuid4().hex

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":  # type: ignore[override]
        """``work`` on a worker, with a ``Stop`` as its last argument."""
        task = self._client.submit(_stoppable, self._name, work, *arguments, pure=False)
        return asyncio.run_coroutine_threadsafe(self._outcome(task), self._client.loop.asyncio_loop)

    async def _outcome(self, task: Any) -> Any:
        """What came of a task. The executor of ``client.get_executor()`` asks for the task's state
        once its result is there, and takes it for an error if the worker has died meanwhile.
        """
        outcome = asyncio.ensure_future(task)
        # Nobody may be left to be told.
        outcome.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            # The client fetches results together: one that is cancelled then cancels all others, for ever.
            return await asyncio.shield(outcome)
        except asyncio.CancelledError:
            await self._client.cancel([task])
            raise

    def stop(self) -> None:
        """Ends the runs that have begun. Beside the tasks: their threads are busy."""
        name, self._name = self._name, uuid4().hex

        async def tell() -> None:
            await self._client.run(_stop, name)

        # Neither a dead worker's error nor a frozen one's silence is the caller's.
        wait([asyncio.run_coroutine_threadsafe(tell(), self._client.loop.asyncio_loop)], PATIENCE)


class Ray(Executor):
    """The cluster that ``ray.init`` has joined; this machine, if it was not called.

    ``options`` are those of a task (``num_cpus``, ``max_retries``, ``runtime_env``).
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise Error("Ray is not there; expected `pip install ray`") from error
        if not ray.is_initialized():
            ray.init(include_dashboard=False)
        self._ray = ray
        self._task = ray.remote(max_retries=3)(lambda work, *arguments: work(*arguments))
        if options:
            self._task = self._task.options(**options)
        self._under_way: Dict[Future[Any], Any] = {}

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":  # type: ignore[override]
        """``work`` on a worker."""
        reference = self._task.remote(work, *arguments)
        future: Future[Any] = reference.future()
        self._under_way[future] = reference
        future.add_done_callback(lambda done: self._under_way.pop(done, None))
        return future

    def stop(self) -> None:
        """Ends the runs that have begun, as Ctrl-C would."""
        for reference in list(self._under_way.values()):
            self._ray.cancel(reference)
