"""The users of this machine: who owns a file, and what they are called.

Alone: locks, the state and admission all ask about users, and none of them is about users.
"""

from __future__ import annotations

from pathlib import Path


def user_name(user: int) -> str:
    """The login name of a user of this machine; its number if it has none."""
    import pwd  # Windows has none

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def owner(path: Path) -> int | None:
    """The user that owns an entry, which may be a link; None if there is none, or it cannot be seen."""
    try:
        return path.lstat().st_uid
    except OSError:
        return None
