"""The attributes of a checklist's item: ``{key=value …}`` after its title, ``key: value`` in lines below it.

Values are words. A value in double quotes is a JSON string; a list is ``a,b`` or JSON, and metadata is JSON or YAML in
one line. An empty value means none.
"""

from __future__ import annotations

import json
import re
from typing import Any

from workbench.rules.tasks.plan.draft import KEYS, LISTS, Problems, unknown_key
from workbench.rules.tasks.plan.yaml import load
from workbench.rules.wire import json_safety

_NULLABLE = frozenset(
    {
        "worktree",
        "run",
        "check",
        "done_when",
        "budget",
        "needs",
        "max_retries",
        "lease_seconds",
        "context_ref",
        "session",
        "parent",
        "due",
    }
)

_QUOTES = ("'", '"')
_WORD = re.compile(r"[A-Za-z0-9._/@:+-]+")
_PAIR = r"""([A-Za-z_]\w*)=("[^"\\]*+(?:\\.[^"\\]*+)*"|'[^']*+'|[^\s"'{}]*+)"""
"""No group is repeated possessively: before Python 3.11.5 such patterns match what they should not."""
_PAIRS = re.compile(_PAIR)
_BRACES = re.compile(rf"(?:^|(?<=\s))\{{\s*+{_PAIR}(?:\s++{_PAIR})*\s*+\}}\s*+$")
_NEARLY_BRACES = re.compile(r"(?:^|\s)\{\s*[A-Za-z_]\w*=[^{}]*+\}?\s*+$")
_LINE = re.compile(r"([a-z_]+):(?:[ \t]+(.*))?", re.DOTALL)


def after_title(title: str) -> tuple[str, dict[str, Any], list[str]]:
    """Split a title into the title proper and the attributes in braces at its end; also return their problems."""
    found = _BRACES.search(title)
    if found is None:
        wrong = ["the braces do not contain `key=value …`; put values with spaces in quotes"]
        return title.strip(), {}, wrong if _NEARLY_BRACES.search(title) else []
    fields: dict[str, Any] = {}
    pairs = _PAIRS.findall(found[0])
    problems = [reason for key, raw in pairs for reason in _put(fields, key, raw, raw[:1] in _QUOTES)]
    return title[: found.start()].strip(), fields, problems


def line(text: str) -> tuple[str, str] | None:
    """The key and value of a line ``key: value``; None for any other line."""
    found = _LINE.fullmatch(text)
    return (found[1], (found[2] or "").strip()) if found else None


def put(fields: dict[str, Any], key: str, raw: str) -> list[str]:
    """Add an attribute from a line to the fields of a task; return the problems."""
    return _put(fields, key, raw, _is_quoted(raw))


def _put(fields: dict[str, Any], key: str, raw: str, is_quoted: bool) -> list[str]:
    if key not in KEYS:
        return [f"{unknown_key(key, KEYS)}. A description goes after an empty line"]
    if key in fields:
        return [f"the key {key!r} is given twice"]
    try:
        fields[key] = _unquoted(raw) if is_quoted else _value(key, raw)
    except ValueError as error:
        return [f"{key}: {error}"]
    return []


def written(key: str, value: Any) -> str | None:
    """A value as written in braces; None if it is too complex for them."""
    if value is None:
        return ""
    words = value if key in LISTS else [value]
    simple = all(isinstance(word, str | int | float) and _WORD.fullmatch(str(word)) for word in words)
    return ",".join(map(str, words)) if simple else None


def as_line(value: Any) -> str:
    """A value as written in a line of its own."""
    plain = (
        isinstance(value, str) and value and value == value.strip() and value.isprintable() and value[0] not in "\"'["
    )
    return value if plain else json.dumps(value, ensure_ascii=False)


def _is_quoted(raw: str) -> bool:
    if raw.startswith("'"):
        return len(raw) > 1 and raw.endswith("'") and "'" not in raw[1:-1]
    try:
        return raw.startswith('"') and isinstance(json.loads(raw), str)
    except ValueError:
        return False


def _unquoted(raw: str) -> str:
    if raw.startswith("'"):
        return raw[1:-1]
    try:
        return str(json.loads(raw, strict=False))
    except ValueError as error:
        raise ValueError(f"not a valid JSON string in double quotes: {error}") from None


def _value(key: str, raw: str) -> Any:
    if not raw and key in _NULLABLE:
        return None
    if key == "metadata" or (key == "needs" and raw.startswith("{")):
        return _data(raw)
    if key in LISTS:
        return _data(raw) if raw.startswith("[") else [word for part in raw.split(",") if (word := part.strip())]
    if key in ("run", "check", "budget") and raw.startswith(("[", "{")):
        return _structured(raw)
    return raw


def _structured(raw: str) -> Any:
    """A list of words, a check with more than its command, a budget, or a line for the shell that begins so."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def _data(raw: str) -> Any:
    """JSON, or YAML in one line."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        data = _yaml(raw)
    json_safety.check(data)
    return data


def _yaml(raw: str) -> Any:
    problems = Problems()
    data = load(raw, problems)
    if problems.found:
        raise ValueError(problems.found[0]["reason"])
    return data
