"""The workplace of commands in a worktree: what they find there besides the files of the commit.

The keys stand at five levels: settings, plan, persona, definition and the spawn itself. The narrowest level wins, key
by key. A level that is not trusted, such as the words of an agent, can close what is open and open nothing.

Here are the values and their rules only; no file is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Self

from workbench.errors import BadInput
from workbench.rules.hosts import HostPattern
from workbench.rules.profile import RESERVED

MOST_ITEMS = 100
LONGEST = 1_000
LONGEST_SETUP = 10_000
MOST_GPUS = 1
"""A box has one device: two agents that share one spoil each other's measurements, and no queue of devices exists."""
OPENING = ("include", "read", "environment", "setup", "env", "gpu", "network", "private")
"""Keys that give a command more than a commit's files; `hide` opens when it loses a path."""
_UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d{1,15})([kMG]?)i?B?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = (".git", ".aiswarm")


@dataclass(frozen=True, slots=True)
class Workplace:
    """What commands in a worktree find and reach there.

    Args:
        include: patterns of files that git ignores, as in ``.gitignore``: copied into a new worktree.
        read: files and directories, relative to the project or absolute: read-only, where the project has them.
        environment: the directory of a virtual environment or of one of conda; empty: none.
        setup: a command that runs in the box, once per worktree; empty: none.
        setup_seconds: how long it may take.
        submodules: whether worktrees have the files of submodules.
        env: variables of commands; a value may be a reference to a secret, such as ``env://NAME``.
        shm: the size of ``/dev/shm`` in bytes.
        gpu: how many GPUs commands may use.
        network, private: hosts by name, such as ``pypi.org:443`` or ``*.example.org:443``; see `HostRules`.
        hide: paths that no command may read, even below one that is open.
        sources: by key, the level that set it; a key that is not here has its default.
        withheld: by key, the level that asked for more than was trusted.
    """

    include: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    environment: str = ""
    setup: str = ""
    setup_seconds: float = 600.0
    submodules: bool = True
    env: Mapping[str, str] = field(default_factory=dict)
    shm: int = 1 << 30
    gpu: int = 0
    network: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)

    def narrowed(self, values: Mapping[str, Any], source: str, *, trusted: bool = True) -> Self:
        """This workplace with the keys of a narrower level, as `parse` returns them.

        Variables of `env` are set one by one. What `values` would open beyond this workplace is left out and named in
        `withheld`, unless they are `trusted`; paths to hide are then added to those that are hidden.
        """
        changes: dict[str, Any] = {}
        withheld = dict(self.withheld)
        for key, value in values.items():
            before = getattr(self, key)
            if not trusted and opens(key, before, value):
                withheld[key] = source
                if key != "hide":
                    continue
            if key == "env":
                value = {**before, **value}
            elif key == "hide" and not trusted:
                value = tuple(dict.fromkeys((*before, *value)))
            changes[key] = value
        sources = {**self.sources, **dict.fromkeys(changes, source)}
        return replace(self, **changes, sources=sources, withheld=withheld)

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` reads it."""
        return as_json({one.name: getattr(self, one.name) for one in fields(self)})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The workplace that `as_json` wrote."""
        values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in data.items()}
        return cls(**values)

    @property
    def opened(self) -> list[str]:
        """Each key that opens something, with its value and the level that set it; a variable without its value."""
        before = Workplace()
        keys = [key for key in OPENING if opens(key, getattr(before, key), getattr(self, key))]
        values = {key: tuple(self.env) if key == "env" else getattr(self, key) for key in keys}
        return [f"{key}: {as_line(value)} ({self.sources[key]})" for key, value in values.items()]

    @property
    def warnings(self) -> list[str]:
        """A sentence about each key that was withheld."""
        return [
            f"The key {key} of the {source} is not used, because you have not trusted it." + _REMEDY.get(source, "")
            for key, source in self.withheld.items()
        ]


_REMEDY = {
    "persona": " `workbench trust` shows and trusts it.",
    "plan": " Apply the plan with --trust-workplace, or set it in settings.toml.",
}


def as_line(value: Any) -> str:
    """The value of a key in one line."""
    if isinstance(value, Mapping):
        value = [f"{name}={text}" for name, text in value.items()]
    return ", ".join(value) if isinstance(value, tuple | list) else str(value)


def opens(key: str, before: Any, after: Any) -> bool:
    """Whether a value of a key lets commands find or reach more than another value does."""
    if key == "hide":
        return not set(before) <= set(after)
    if key in ("include", "read", "network", "private"):
        return not set(after) <= set(before)
    if key == "env":
        return any(before.get(name) != value for name, value in after.items())
    if key in ("environment", "setup"):
        return bool(after) and after != before
    if key in ("gpu", "shm", "setup_seconds"):
        return bool(after > before)
    return False


def opening(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a level that need trust if they did not come from the person."""
    before = Workplace()
    return {key: value for key, value in values.items() if opens(key, getattr(before, key), value)}


def parse(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keys of one level with checked values; a null is left out.

    Args:
        values: as YAML, TOML or JSON has them; a list may be a single text.
        where: names the level in errors, such as ``The definition``.

    Raises:
        BadInput: ``BAD_WORKPLACE``, ``BAD_HOST_PATTERN``: names the key, and says what is wrong.
    """
    checked: dict[str, Any] = {}
    for key, value in values.items():
        if key not in KEYS:
            raise _bad(where, key, f"there is no such key of a workplace; the keys are {', '.join(KEYS)}")
        if value is None:
            continue
        try:
            checked[key] = _CHECKS[key](value)
        except ValueError as error:
            raise _bad(where, key, str(error)) from None
        except BadInput as error:
            raise error.with_message(f"{where}: {key}: {error.message}", key=key) from None
    return checked


def from_options(pairs: Iterable[str]) -> dict[str, Any]:
    """The keys that options ``KEY=VALUE`` state; one that is repeated adds to its list, ``env=NAME=VALUE`` a variable.

    Raises:
        BadInput: ``BAD_WORKPLACE``.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or key not in KEYS:
            raise _bad("--workplace", key, f"it must be KEY=VALUE with one of the keys {', '.join(KEYS)}")
        if key == "env":
            name, _, value = text.partition("=")
            values.setdefault(key, {})[name] = value
        elif key in _LISTS:
            values.setdefault(key, []).extend([text] if text else [])
        else:
            values[key] = _TEXTS.get(key, str)(text)
    return parse(values, "--workplace")


def size(text: str) -> int:
    """The bytes that a text such as ``512M`` means.

    Raises:
        ValueError: it means none.
    """
    if (match := _SIZE.fullmatch(text.strip())) is None:
        raise ValueError("must be a number of bytes, such as 512M or 2G")
    return int(match[1]) * _UNITS[match[2]]


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a level as plain data; `parse` reads them."""
    return {key: _plain(value) for key, value in values.items()}


def _bad(where: str, key: str, why: str) -> BadInput:
    return BadInput("BAD_WORKPLACE", f"{where}: {key[:50]!r}: {why}.", key=key[:50])


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _texts(value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, Sequence) or not all(isinstance(one, str) for one in values):
        raise ValueError("must be a list of texts")
    if len(values) > MOST_ITEMS:
        raise ValueError(f"has more than {MOST_ITEMS} items")
    for one in values:
        _text(one, LONGEST)
        if not one.strip():
            raise ValueError("has an empty item")
    return tuple(dict.fromkeys(values))


def _text(value: Any, longest: int = LONGEST) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError(f"must be a text of at most {longest:,} characters")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("has a character that no path or command can have")
    return value


def _patterns(value: Any) -> tuple[str, ...]:
    patterns = _texts(value)
    for pattern in patterns:
        parts = PurePosixPath(pattern.lstrip("!")).parts
        if pattern.startswith("~") or ".." in parts:
            raise ValueError(f"{pattern!r} leads out of the project; name data outside in read")
        if any(part in _OWN for part in parts):
            raise ValueError(f"{pattern!r} names what belongs to git or to Workbench")
        if pattern.startswith(("!", "#")) or "\n" in pattern:
            raise ValueError(f"{pattern!r} selects nothing; write patterns of what is wanted")
    return patterns


def _paths(value: Any) -> tuple[str, ...]:
    return tuple(map(_path, _texts(value)))


def _path(path: str) -> str:
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise ValueError(f"{path!r} has '..'; write the path from the project's root, or a whole one")
    if set("*?[") & set(path):
        raise ValueError(f"{path!r} is a pattern and no path; name the directory")
    if not path.startswith(("/", "~")) and (not parts or parts[0] in _OWN):
        raise ValueError(f"{path!r} is the project itself, or belongs to git or to Workbench")
    if path.rstrip("/") in ("", "~"):
        raise ValueError(f"{path!r} is everything; name the directories that are needed")
    return path.rstrip("/")


def _prefix(value: Any) -> str:
    text = _text(value)
    return _path(text) if text else ""


def _variables(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise ValueError("must be a mapping of names to texts")
    if len(value) > MOST_ITEMS:
        raise ValueError(f"has more than {MOST_ITEMS} variables")
    for name, text in value.items():
        if not _VARIABLE.fullmatch(name) or name.upper().startswith(RESERVED):
            raise ValueError(f"{name[:100]!r} may not be set; names that begin with {', '.join(RESERVED)} are reserved")
        _text(text, 100_000)
    return dict(value)


def _hosts(value: Any) -> tuple[str, ...]:
    hosts = _texts(value)
    for host in hosts:
        HostPattern.parse(host)
    return hosts


def _number(least: float, most: float, kind: type[int] | type[float]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        allowed = (int,) if kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed) or not least <= value <= most:
            raise ValueError(f"must be a {'whole ' if kind is int else ''}number from {least:g} to {most:g}")
        return kind(value)

    return check


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _bytes(value: Any) -> int:
    count = size(value) if isinstance(value, str) else value
    return int(_number(1 << 20, 1 << 40, int)(count))


def _as_switch(text: str) -> Any:
    return {"true": True, "false": False}.get(text.lower(), text)


def _as_number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


_LISTS = ("include", "read", "network", "private", "hide")
_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "submodules": _as_switch,
    "gpu": _as_number,
    "setup_seconds": _as_number,
}
_CHECKS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "include": _patterns,
        "read": _paths,
        "environment": _prefix,
        "setup": lambda value: _text(value, LONGEST_SETUP),
        "setup_seconds": _number(1, 86_400, float),
        "submodules": _switch,
        "env": _variables,
        "shm": _bytes,
        "gpu": _number(0, MOST_GPUS, int),
        "network": _hosts,
        "private": _hosts,
        "hide": _paths,
    }
)
KEYS = tuple(_CHECKS)

_LIST = {"type": "array", "items": {"type": "string"}}
SCHEMA: Mapping[str, Any] = {
    **dict.fromkeys(_LISTS, _LIST),
    "environment": {"type": "string"},
    "setup": {"type": "string"},
    "setup_seconds": {"type": "number", "minimum": 1},
    "submodules": {"type": "boolean"},
    "env": {"type": "object", "additionalProperties": {"type": "string"}},
    "shm": {"type": ["string", "integer"]},
    "gpu": {"type": "integer", "minimum": 0, "maximum": MOST_GPUS},
}
"""The JSON Schema of each key, in files."""
