"""Deferred loading: modules that are imported, and parts that are created, on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from threading import RLock
from typing import Any, Generic, Protocol, Self, TypeVar, overload

T = TypeVar("T")


def defer_imports(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a ``__getattr__`` for ``package`` (PEP 562) that imports modules on first use.

    Args:
        package: The package's full name.
        homes: For each module below the package, the names that the package exports from it, separated by
            spaces.

    Returns:
        A function that returns the value of a name. It raises AttributeError for any other name.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module}"), name)

    return find


class _HasLock(Protocol):
    loading: RLock


class LazyPart(Generic[T]):
    """A property whose value is created once, on first use, even if several threads need it at the same time.

    `functools.cached_property` does not guarantee this: since Python 3.12, it takes no lock. The object needs
    a lock as its attribute ``loading``.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: _HasLock, kind: type) -> T: ...

    def __get__(self, owner: _HasLock | None, kind: type) -> Self | T:
        # Python only calls this until the value is in the object's dictionary.
        if owner is None:
            return self
        made = vars(owner)
        with owner.loading:
            if self._name not in made:
                made[self._name] = self._make(owner)
            value: T = made[self._name]
        return value

    def loaded(self, owner: object) -> T | None:
        """Return the value of ``owner``, None if it was not created yet."""
        return vars(owner).get(self._name)
