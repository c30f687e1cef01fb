"""Names of a package whose modules are imported only once one of them is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def defer_imports(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """What a package calls its ``__getattr__`` (PEP 562): a command must not wait for what it does not need.

    Args:
        package: Its whole name.
        homes: For each module below it, the names that the package gives of it, with spaces between.

    Returns:
        Finds a name's value. It raises AttributeError for any other name.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module}"), name)

    return find
