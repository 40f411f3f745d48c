"""Facts that only a kernel knows: the packages that it has imported, and the errors inside a group.

It is asked in Python, between cells. A kernel of another language gives no answer.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from typing import Any

from workbench.process.packages import versions

Ask = Callable[[str], Any]
"""Asks the kernel for the value of an expression; its reply."""
_MODULES = (
    "__import__('json').dumps([__import__('sys').prefix, sorted({name.partition('.')[0] for name in "
    "list(__import__('sys').modules)} - __import__('sys').stdlib_module_names)])"
)
_VERSIONS = (
    "(lambda metadata, tops: __import__('json').dumps({name: metadata.version(name) for top, names in "
    "metadata.packages_distributions().items() if top in tops for name in names}))"
    "(__import__('importlib.metadata', fromlist=['version']), {name.partition('.')[0] for name in "
    "list(__import__('sys').modules)})"
)
_LEAF = (
    "(lambda find: (lambda last: __import__('json').dumps([type(last).__name__, *find(find, last)]))"
    "(__import__('sys').last_value))"
    "(lambda find, error: find(find, error.exceptions[0]) if isinstance(error, BaseExceptionGroup) "
    "else [type(error).__name__, str(error)])"
)
_MOST_ASKED = 3
"""How often to ask a kernel, which drops requests after an error."""


def packages(ask: Ask) -> dict[str, str]:
    """The packages that a kernel has imported, with their versions."""
    reply = _evaluate(ask, _MODULES)
    if reply is None:
        return {}
    prefix, modules = reply
    return versions(modules) if prefix == sys.prefix else _evaluate(ask, _VERSIONS) or {}


def leaf(ask: Ask, group: str) -> str | None:
    """The first error within the groups of the last error, as `ValueError: bad`; None if that is no group.

    Args:
        group: the class of the last error.
    """
    last, name, text = _evaluate(ask, _LEAF) or ("", "", "")
    return f"{name}: {text}" if last == group != name else None


def expression(text: str) -> dict[str, Any]:
    """The request for the value of an expression."""
    return {"code": "", "silent": True, "store_history": False, "user_expressions": {"value": text}}


def _evaluate(ask: Ask, text: str) -> Any:
    for _ in range(_MOST_ASKED):
        content = (ask(text) or {}).get("content", {})
        if content.get("status") != "aborted":
            break
    try:
        return json.loads(ast.literal_eval(content["user_expressions"]["value"]["data"]["text/plain"]))
    except (KeyError, TypeError, ValueError, SyntaxError):
        return None
