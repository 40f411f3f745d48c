"""The names of tools. Every provider of models accepts them, and no two tools have the same one."""

from __future__ import annotations

import hashlib
import re

SEPARATOR = "__"
NAME_LIMIT = 64
HASH_LENGTH = 8

_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_-]{{0,{NAME_LIMIT - 1}}}")
_UNSUITABLE = re.compile(r"[^a-zA-Z0-9_-]")


def is_local(name: str) -> bool:
    """Whether a tool that runs here may have a name: one that no tool of an MCP server can have."""
    return _NAME.fullmatch(name) is not None and SEPARATOR not in name.strip("_")


def qualified(server: str, tool: str) -> str:
    """The name under which a tool of an MCP server, of a definition or of an agent is offered: ``server__tool``.

    It ends with a hash if the plain name would be too long, has characters that some providers refuse, or could also
    be that of another server's tool.
    """
    plain = f"{server}{SEPARATOR}{tool}"
    is_clear = SEPARATOR not in server and not server.startswith("_") and not server.endswith("_")
    if is_clear and _NAME.fullmatch(plain) and not _ENDS_WITH_HASH.search(plain):
        return plain
    digest = hashlib.sha256(f"{len(server)} {server}{tool}".encode()).hexdigest()[:HASH_LENGTH]
    return f"{_suitable(plain)[: NAME_LIMIT - HASH_LENGTH - 1]}-{digest}"


def prefix(server: str) -> str:
    """How the names of a server's tools begin. Those of another one may begin so, too, if they end with a hash."""
    return _suitable(f"{server}{SEPARATOR}")[: NAME_LIMIT - HASH_LENGTH - 1]


def _suitable(plain: str) -> str:
    suitable = _UNSUITABLE.sub("_", plain)
    return suitable if suitable[0].isalpha() else f"t{suitable}"


_ENDS_WITH_HASH = re.compile(rf"-[0-9a-f]{{{HASH_LENGTH}}}$")
"""Plain names that look like ones with a hash get one, too."""
