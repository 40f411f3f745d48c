"""Values of what is stored, which are dictionaries and lists: to change one in place writes the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Write = Callable[[Any], None]
_CHANGES = {
    dict: ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"),
    list: (
        *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "extend", "insert", "pop", "remove"),
        *("clear", "sort", "reverse"),
    ),
}


def live(value: Any, write: Write) -> Any:
    """A value that is written, as it is then, when it is changed in place, also deep within.

    Args:
        write: stores the whole changed value. What it raises leaves the value as it was.
    """
    if isinstance(value, dict):
        return _LiveDict(value, write)
    return _LiveList(value, write) if isinstance(value, list) else value


class _LiveDict(dict[Any, Any]):
    """See `live`."""

    _kind = dict

    def __init__(self, value: dict[Any, Any], write: Write) -> None:
        super().__init__({key: live(one, self._within(key)) for key, one in value.items()})
        self._write = write

    def _within(self, key: Any) -> Write:
        return lambda one: self.__setitem__(key, one)


class _LiveList(list[Any]):
    """See `live`."""

    _kind = list

    def __init__(self, value: list[Any], write: Write) -> None:
        super().__init__(live(one, self._within(index)) for index, one in enumerate(value))
        self._write = write

    def _within(self, index: int) -> Write:
        return lambda one: self.__setitem__(index, one)


def _plain(value: Any) -> Any:
    """A value of ordinary dictionaries and lists."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _writing(name: str) -> Callable[..., Any]:
    def change(self: Any, *arguments: Any, **named: Any) -> Any:
        changed = _plain(self)
        result = getattr(changed, name)(*arguments, **named)
        self._write(changed)
        self._kind.clear(self)
        fill = self._kind.update if self._kind is dict else self._kind.extend
        fill(self, type(self)(changed, self._write))
        return self if name.startswith("__i") else result

    return change


for _class, _names in ((_LiveDict, _CHANGES[dict]), (_LiveList, _CHANGES[list])):
    for _name in _names:
        setattr(_class, _name, _writing(_name))
