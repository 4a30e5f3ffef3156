"""Progress bars by tqdm, where it is installed: in a terminal and in a notebook."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Callable, Iterator, Optional


@contextmanager
def watched(wanted: bool, total: int, unit: str) -> Iterator[Optional[Callable[[int], None]]]:
    """A function that is told how many of ``total`` are done; None if nobody wants to see it."""
    # Programs without a terminal may have no standard error at all.
    wanted = wanted and sys.stderr is not None
    if wanted:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            wanted = False
    if not wanted:
        yield None
        return
    with tqdm(total=total, unit=unit, leave=False) as bar:
        yield lambda done: bar.update(done - bar.n) and None
