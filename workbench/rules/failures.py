"""Why an attempt of an agent's program failed, as a kind; each kind has a policy (`workbench.services.holds`)."""

from __future__ import annotations

import hashlib
from enum import StrEnum


class FailureKind(StrEnum):
    """The kinds of failures.

    `AUTH`: the provider accepts neither key nor login. `REFUSED`: it cannot be reached, or refuses what it is asked,
    such as an unknown model. `LIMIT`: what may be used for now is used up. `OVERLOADED`: it is out of order for now.
    `CONTEXT`: the conversation became too long. `TURNS`: the program's own limit of turns or of money is reached.
    `SILENT`: the program said nothing for too long. `CRASHED`: it ended without saying how. `FAILED`: it says that it
    failed, for another reason.
    """

    AUTH = "auth"
    REFUSED = "refused"
    LIMIT = "limit"
    OVERLOADED = "overloaded"
    CONTEXT = "context"
    TURNS = "turns"
    SILENT = "silent"
    CRASHED = "crashed"
    FAILED = "failed"


ASKED = frozenset({FailureKind.AUTH, FailureKind.REFUSED})
"""Another attempt would fail alike: the person is asked at once."""
WAITING = frozenset({FailureKind.LIMIT, FailureKind.OVERLOADED})
"""These pass with time: attempts wait, and use up no retry."""


def account_name(provider: str, secret: str) -> str:
    """A name of a key or a login of a provider, which does not tell it."""
    return f"{provider}-{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
