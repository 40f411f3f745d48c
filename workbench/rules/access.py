"""Ids, tokens and levels: which ids are valid, how tokens are made and compared, what a grant allows."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator
from itertools import count

from workbench.errors import BadInput, Refused
from workbench.model import GrantedAccess, Level, Registration, Role

_LONGEST_BASE = 48
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORKTREE = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_RESERVED_WORKTREES = frozenset({"head", "main", "master", "objects", "refs", "trash", "con", "nul", "aux", "prn"})
_RESERVED_AGENTS = frozenset({"operator", "anonymous", "system"})
"""Names that events give to actors other than agents."""
_MISLEADING_AGENTS = frozenset(
    {
        *("none", "null", "nil", "undefined", "nan", "true", "false", "unknown", "default"),
        *("me", "self", "you", "user", "human", "admin", "nobody", "anyone", "someone", "everyone", "everybody", "all"),
    }
)
"""Words that commands, programs and readers take for no agent, for themselves, or for several agents."""
_IMPORTED_ID = re.compile(r"(?!\s)[^#\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]{1,200}(?<!\s)")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Addresses of this machine. Not all of 127.0.0.0/8: forwarders may listen on the others for remote clients."""
TURNED_AWAY = frozenset({Registration.REJECTED, Registration.REVOKED})
"""States of agents that the operator rejected or revoked."""
MAY_ACT = frozenset({Registration.ASSIGNED, Registration.ACTIVE, Registration.INACTIVE})
"""States in which an agent's token permits more than reading its registration status."""


def new_token(kind: str) -> str:
    """A new secret of 256 bits; `kind` is ``wba`` for agents, ``wbh`` for machines, ``wbo`` for the operator."""
    return f"{kind}_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """The hash of a token, which is what is stored. With 256 random bits, a plain hash resists brute force."""
    return hashlib.sha256(token.encode()).hexdigest()


def same_token(given: str, known: str) -> bool:
    """Compare secrets in constant time."""
    return hmac.compare_digest(given.encode(), known.encode())


def check_agent_id(agent_id: str) -> str:
    """Check an id that the operator chooses for an agent.

    Raises:
        BadInput: ``BAD_AGENT_ID``.
    """
    if _is_reserved(agent_id) or not _AGENT_ID.fullmatch(agent_id):
        raise BadInput(
            "BAD_AGENT_ID",
            "An agent id has 1 to 64 letters, digits, '.', '_' or '-', begins with a letter or digit, "
            "and is not a reserved word, such as none or everyone.",
        )
    return agent_id


def _is_reserved(agent_id: str) -> bool:
    word = agent_id.lower()
    return word in _RESERVED_AGENTS or word in _MISLEADING_AGENTS or word.startswith("pending_")


def may_keep_id(agent_id: str) -> bool:
    """Whether an imported agent may keep its id: one line of visible text that names no other actor.

    The old server allowed any id. A ``#`` would begin a comment in the allowlist.
    """
    taken = agent_id.lower() in _RESERVED_AGENTS or agent_id.lower().startswith(("pending_", "rule:"))
    return not taken and _IMPORTED_ID.fullmatch(agent_id) is not None


def check_worktree_name(name: str) -> str:
    """Check the name of a worktree (spec 3, naming constraints).

    Raises:
        BadInput: ``BAD_WORKTREE_NAME``.
    """
    if name in _RESERVED_WORKTREES or not _WORKTREE.fullmatch(name):
        raise BadInput(
            "BAD_WORKTREE_NAME",
            "A worktree's name has 1 to 50 lower-case letters, digits, '_' or '-', begins with a "
            "letter or digit, and is not a reserved word.",
        )
    return name


def level_of(status: Registration, tool: GrantedAccess, role: Role) -> Level:
    """An agent's level, from its registration status and its grant."""
    if status not in MAY_ACT:
        return Level.ANONYMOUS
    if tool is GrantedAccess.READ:
        return Level.READ
    return Level.PLANNER if role is Role.PLANNER else Level.WORKER


def rejected(reason: str | None) -> Refused:
    """The error for an agent whose registration was rejected; `details.reason` is the operator's reason or null."""
    why = f": {reason.strip().rstrip('.')}." if reason else "; no reason was given."
    return Refused(
        "REJECTED",
        f"Your registration was rejected{why} Ask the operator before you register again.",
        reason=reason or None,
    )


def id_from_name(name: str) -> str:
    """Make an id from an agent's name; characters that an id may not contain become dashes.

    Of a long name both ends are kept: names often differ at their end alone, and a number that is cut is another one.
    """
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "agent"
    if len(base) > _LONGEST_BASE:
        half = _LONGEST_BASE // 2
        base = f"{base[: half - 1].rstrip('-._')}-{base[-half:].lstrip('-._')}"
    return f"agent-{base}" if _is_reserved(base) else base


def free_id(base: str, taken: set[str]) -> str:
    """`base`, or with the first free number if it is taken, in upper or lower case."""
    words = {one.lower() for one in taken}
    return next(c for c in _numbered(base) if c.lower() not in words)


def _numbered(base: str) -> Iterator[str]:
    yield base
    for number in count(2):
        yield f"{base}-{number}"
