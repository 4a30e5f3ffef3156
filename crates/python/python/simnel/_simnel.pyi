"""The compiled part: what the package's Python stands on."""

from os import PathLike
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union

__version__: str

class Error(ValueError):
    """A scenario, words of a discipline or a file that Simnel cannot work with."""

class Stop:
    """A switch that ends runs on other threads."""

    def __init__(self) -> None: ...
    def set(self) -> None: ...
    def is_set(self) -> bool: ...

class Table:
    """An Arrow table, which polars, pandas, pyarrow and DuckDB read where it lies."""

    def __init__(self, columns: Mapping[str, List[Any]]) -> None:
        """Columns of equal length: whole numbers, numbers or words; None is missing."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
    def __contains__(self, name: str) -> bool:
        """True if there is a column of that name."""
    def __getitem__(self, name: str) -> List[Any]:
        """A column as a list."""
    def to_dict(self) -> Dict[str, List[Any]]:
        """All columns as lists."""
    def to_arrow(self) -> Any:
        """A table of pyarrow."""
    def to_polars(self) -> Any:
        """A data frame of polars."""
    def to_pandas(self) -> Any:
        """A data frame of pandas; needs pyarrow."""

class Distribution:
    """Times in milliseconds: exact count and mean, quantiles to 1 %."""

    @property
    def what(self) -> str:
        """What was timed."""
    def __len__(self) -> int: ...
    def quantile(self, q: float) -> Optional[float]:
        """The time (ms) below which the share ``q``, 0 to 1, lies; None if nothing was timed."""
    @property
    def mean(self) -> Optional[float]:
        """Mean (ms)."""
    @property
    def min(self) -> Optional[float]:
        """Least (ms)."""
    @property
    def max(self) -> Optional[float]:
        """Greatest (ms)."""
    def cdf(self) -> Table:
        """The cumulative distribution: ``ms``, and the ``share`` that is not above."""

class Packet:
    """A packet in a discipline that is written in Python."""

    @property
    def size(self) -> int:
        """Bytes, link header included."""
    @property
    def flow(self) -> int:
        """Hash of its flow: equal for all packets of a connection in one direction."""
    @property
    def source(self) -> int:
        """Hash of the sending host."""
    @property
    def destination(self) -> int:
        """Hash of the receiving host."""
    @property
    def dscp(self) -> int:
        """Differentiated services code point, 0 to 63."""
    @property
    def enqueued(self) -> float:
        """When it came (s)."""
    @property
    def is_markable(self) -> bool:
        """True if its transport understands marks (ECN)."""
    def mark(self) -> bool:
        """Marks it (CE) if it is markable; says whether it is."""
    def drop(self) -> None:
        """Drops it out of the queue."""

Choice = Union[str, Callable[[], Any]]

class Run:
    @property
    def json(self) -> str: ...
    @property
    def names(self) -> List[str]: ...
    @property
    def qdisc(self) -> Tuple[str, str]: ...
    @property
    def seed(self) -> int: ...
    @property
    def hash(self) -> str: ...
    def latency(self, name: Optional[str] = None) -> Distribution: ...
    def sojourn(self, name: Optional[str] = None) -> Distribution: ...
    def series(self) -> Table: ...
    def flow_table(self) -> Table: ...
    def line_table(self) -> Table: ...

class Scenario:
    STEPS: int
    def __init__(
        self,
        text: str,
        name: str = "scenario",
        directory: Optional[Union[str, PathLike[str]]] = None,
        traces: Optional[Dict[str, str]] = None,
    ) -> None: ...
    @staticmethod
    def from_file(path: Union[str, PathLike[str]]) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def traces(self) -> Dict[str, str]:
        """Contents of the traces that the text names."""
    def with_values(self, values: List[Tuple[str, str]]) -> Scenario: ...
    def check_keys(self, keys: List[str]) -> None: ...
    def check(self, qdisc: Optional[Choice] = None) -> None: ...
    def run(
        self,
        qdisc: Optional[Choice] = None,
        seed: int = 1,
        progress: Optional[Callable[[int], Any]] = None,
    ) -> Run: ...
    def measure(
        self, qdisc: Optional[Choice] = None, seed: int = 1, stop: Optional[Stop] = None
    ) -> Optional[Dict[str, float]]: ...

class Session:
    """A run in the caller's hands."""

    def __init__(self, scenario: Scenario, qdisc: Optional[str] = None, seed: int = 1) -> None: ...
    @property
    def now(self) -> float:
        """Simulated seconds."""
    @property
    def is_over(self) -> bool:
        """True when the scenario's duration is simulated."""
    @property
    def has_pings(self) -> bool:
        """True if ``answers`` has something to tell."""
    def advance(self, seconds: float) -> None:
        """Simulates so many seconds more."""
    def configure(self, direction: str, words: str) -> None:
        """Changes settings of the discipline of ``"up"`` or ``"down"`` now."""
    def counters(self, direction: str) -> Dict[str, int]:
        """``sent_packets``, ``sent_bytes``, ``drops``, ``marks`` since the run began;
        ``backlog_packets`` and ``backlog_bytes`` now.
        """
    def answers(self) -> List[Tuple[float, float]]:
        """Round trips of all pings since the last call: when sent (s), and how long (ms)."""

def compare(
    contenders: List[str],
    down: str,
    up: str,
    rtt: str,
    repetitions: int,
    progress: Optional[Callable[[int], Any]] = None,
) -> Tuple[List[str], Table]: ...
def compare_runs(contenders: List[str], repetitions: int) -> int: ...
def quantity(words: str) -> Optional[Tuple[float, str]]:
    """A number of a sweep in its base unit, and that unit."""

def looks(names: List[str]) -> List[Tuple[str, str, int]]: ...
def papers() -> List[str]: ...
def about_paper(id: str) -> Dict[str, Any]: ...
def paper_runs(id: str, repetitions: Optional[int] = None) -> int: ...
def paper(
    id: str,
    repetitions: Optional[int] = None,
    progress: Optional[Callable[[int], Any]] = None,
) -> Dict[str, Any]: ...
def replay(
    path: Union[str, PathLike[str]],
    qdisc: str,
    rate: Optional[str] = None,
    seed: int = 1,
    top: int = 10,
    progress: Optional[Callable[[int], Any]] = None,
) -> str: ...
