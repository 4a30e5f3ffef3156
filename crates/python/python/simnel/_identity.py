"""What the numbers of a sweep depend on, as one hash: a data set takes no rows of another one.

Of a discipline in Python that is its code: bytecode and constants of its methods, and what they use
of its own package. Its source would not do: two classes may have one name, and a file may have
changed since it was imported. So a sweep with such a discipline is another one to another version
of Python. Values that no code can be read from, such as an array, count by their class alone.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import json
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Dict, Iterable, Iterator, Set, Tuple

from . import _simnel

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
LIBRARY = {"builtins", "abc", "typing", "simnel"}
"""Packages whose classes have no code of a discipline's author."""


def identity(whole: Any) -> str:
    """A hash of words, numbers and lists."""
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def traces(scenarios: Iterable[_simnel.Scenario]) -> Dict[str, str]:
    """Hashes of the traces that ``scenarios`` name."""
    known = {name: trace for read in scenarios for name, trace in read.traces.items()}
    return {name: hashlib.sha256(known[name].encode()).hexdigest() for name in sorted(known)}


def code(make: Any) -> Any:
    """What ``make``, a class or another callable that makes disciplines, does."""
    kinds = make.__mro__ if isinstance(make, type) else (make, type(make))
    return _Reader({_package(one) for one in kinds} - LIBRARY).told(make)


class _Reader:
    """Reads what belongs to ``packages``; of others' functions and classes the names do."""

    def __init__(self, packages: Set[str]) -> None:
        self._packages = packages
        # The objects themselves: a number is free for another once its object is gone.
        self._seen: Dict[int, Any] = {}

    def told(self, value: Any) -> Any:
        """``value`` as words and lists of these, equal in all processes."""
        if isinstance(value, PLAIN):
            return repr(value)
        name = _name(value)
        # Whether equal constants are one object is the interpreter's affair.
        if not isinstance(value, (tuple, frozenset, CodeType)):
            if id(value) in self._seen:
                return name
            self._seen[id(value)] = value
        return [name, *self._parts(value)]

    def _parts(self, value: Any) -> Iterator[Any]:
        if isinstance(value, (tuple, list)):
            yield from (self.told(one) for one in value)
        elif isinstance(value, (set, frozenset)):
            yield from sorted((self.told(one) for one in value), key=json.dumps)
        elif isinstance(value, dict):
            yield from ([self.told(key), self.told(one)] for key, one in value.items())
        elif isinstance(value, CodeType):
            yield value.co_code.hex()
            yield getattr(value, "co_exceptiontable", b"").hex()
            yield [value.co_names, value.co_varnames]
            yield [self.told(one) for one in value.co_consts]
        elif isinstance(value, (FunctionType, type)) and _package(value) not in self._packages:
            return
        elif isinstance(value, FunctionType):
            yield from map(self.told, (value.__code__, value.__defaults__, value.__kwdefaults__))
            yield from (self.told(one) for one in _enclosed(value))
            for name in sorted(_global_names(value.__code__)):
                yield [name, self.told(value.__globals__.get(name))]
        elif isinstance(value, (staticmethod, classmethod)):
            yield self.told(value.__func__)
        elif isinstance(value, MethodType):
            yield from map(self.told, (value.__func__, value.__self__))
        elif isinstance(value, property):
            yield from map(self.told, (value.fget, value.fset, value.fdel))
        elif isinstance(value, functools.partial):
            yield from map(self.told, (value.func, value.args, value.keywords))
        elif isinstance(value, type):
            yield from (self.told(one) for one in value.__bases__)
            yield from ([key, self.told(one)] for key, one in _attributes(value))
        elif _package(type(value)) in self._packages:
            yield from map(self.told, (type(value), getattr(value, "__dict__", None)))


def _package(value: Any) -> str:
    return (getattr(value, "__module__", None) or "").split(".")[0]


def _name(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    if isinstance(value, ModuleType):
        return value.__name__
    return f"{getattr(named, '__module__', '')}.{named.__qualname__}"


def _enclosed(function: FunctionType) -> Iterator[Any]:
    """Values of the functions around it that it uses."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass  # None yet.


def _global_names(of: CodeType) -> Set[str]:
    names = {one.argval for one in dis.get_instructions(of) if one.opname == "LOAD_GLOBAL"}
    inner = (one for one in of.co_consts if isinstance(one, CodeType))
    return names.union(*map(_global_names, inner))


def _attributes(of: type) -> Iterator[Tuple[str, Any]]:
    """What a class has in its body, without what Python notes there itself."""
    for key, value in sorted(vars(of).items()):
        noted = key.startswith("__") and not isinstance(value, FunctionType)
        if not noted and key != "_abc_impl":
            yield key, value
