"""Results of a sweep as a data set of Parquet files that grows.

A directory with ``part-000000.parquet`` and so on. A part has its name only when it is whole: what
reads meanwhile, or after a crash, sees whole parts. Each says to which sweep it belongs.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, Callable, List, Sequence, Set, Tuple, Union

from ._simnel import Error, Table

ROWS = 10_000
"""Rows of a part at most."""
SECONDS = 10.0
"""Greatest age of a row that is in no part: what is lost if the process is killed."""
SWEEP = b"simnel.sweep"
"""Key of the sweep's identity in a part's metadata."""


class Store:
    """The data set in ``directory`` that belongs to the sweep ``identity``. Add rows, then close.

    ``known`` are the numbers of the runs that it had. ``table`` makes rows of numbered runs.
    """

    def __init__(
        self,
        directory: Union[str, "os.PathLike[str]"],
        identity: str,
        table: Callable[[Sequence[Tuple[int, Any]]], Table],
    ) -> None:
        try:
            import pyarrow
            import pyarrow.dataset as dataset
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise Error("a data set needs pyarrow; expected `pip install pyarrow`") from error
        self._arrow, self._datasets, self._parquet = pyarrow, dataset, parquet
        self._directory, self._table = Path(directory), table
        self._metadata = {SWEEP: identity.encode()}
        self._rows: List[Tuple[int, Any]] = []
        self._since = 0.0
        """When the first of ``_rows`` came."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock = open(self._directory / ".lock", "w")
        except OSError as error:
            what = f"{directory}: {error.strerror}"
            raise Error(f"{what}; expected a directory that can be written to") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.known = self._numbers()
        except BlockingIOError:
            self._lock.close()
            raise Error(f"another sweep writes to {directory}; expected another directory") from None
        except BaseException:
            self._unlock()
            raise

    def _unlock(self) -> None:
        # Closing is not enough: processes that were forked meanwhile have the lock open, too.
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        self._lock.close()

    def _parts(self) -> List[Path]:
        return sorted(self._directory.glob("part-*.parquet"))

    def _numbers(self) -> Set[int]:
        """Runs that are there."""
        known: Set[int] = set()
        for path in self._parts():
            try:
                part = self._parquet.ParquetFile(path)
                identity = (part.schema_arrow.metadata or {}).get(SWEEP)
                runs = part.read(["run"]).to_pydict().get("run", ())
            except (self._arrow.ArrowException, OSError) as error:
                raise Error(
                    f"{path}: {error}; expected a whole part: "
                    "without this file its runs are done again"
                ) from error
            if identity != self._metadata[SWEEP]:
                raise Error(
                    f"{path} belongs to another sweep; expected another directory, "
                    "or the scenario, values and repetitions that it began with"
                )
            known.update(runs)
        return known

    def add(self, runs: Sequence[Tuple[int, Any]]) -> None:
        """Rows of runs. To be called without any, too, for a part to be written when it is due."""
        for run in runs:
            if not self._rows:
                self._since = monotonic()
            self._rows.append(run)
            if len(self._rows) >= ROWS:
                self._write()
        if self._rows and monotonic() - self._since >= SECONDS:
            self._write()

    def _write(self) -> None:
        """Makes a part of what has come since the last."""
        if not self._rows:
            return
        rows = self._table(self._rows).to_arrow()
        rows = rows.add_column(0, "run", [[number for number, _ in self._rows]])
        rows = rows.replace_schema_metadata(self._metadata)
        # Names that somebody else gave have no number.
        taken = {path.name for path in self._parts()}
        names = (f"part-{number:06}.parquet" for number in count(len(taken)))
        path = self._directory / next(name for name in names if name not in taken)
        try:
            self._put(rows, path)
        except OSError as error:
            raise Error(
                f"{path}: {error.strerror}; expected room for it: "
                "what is there already stays, and the same call goes on"
            ) from error
        self._rows = []

    def _put(self, rows: Any, path: Path) -> None:
        """A part under its name, which it has only when it is whole."""
        unfinished = path.with_name(f".{path.name}")
        try:
            with open(unfinished, "wb") as file:
                self._parquet.write_table(rows, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise
        # The name is the directory's.
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def close(self) -> None:
        """Writes what is left."""
        try:
            self._write()
        finally:
            self._unlock()

    def dataset(self) -> Any:
        """All of it, read when it is asked for: a ``pyarrow.dataset.Dataset``."""
        paths = [str(path) for path in self._parts()]
        schemas = [self._parquet.read_schema(path) for path in paths]
        return self._datasets.dataset(paths, schema=self._arrow.unify_schemas(schemas))
