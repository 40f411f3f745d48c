"""The identifier of a personality, and how identifiers from other nodes are read."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BeforeValidator
from rid_lib import RIDType
from rid_lib.core import ORN

LONGEST = 300
"""Characters of a RID."""
LONGEST_PART = 128
"""Characters of a name, and of a version."""


class AgentPersonality(ORN):
    """A version of an agent's personality: ``orn:agent.personality:<name>/<version>`` (spec 5, 3.2)."""

    namespace = "agent.personality"

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version

    @property
    def reference(self) -> str:
        """``<name>/<version>``."""
        return f"{self.name}/{self.version}"

    @classmethod
    def from_reference(cls, reference: str) -> Self:
        """Parse ``<name>/<version>``.

        Raises:
            ValueError: it has another form, or a part is empty or longer than `LONGEST_PART`.
        """
        name, separator, version = reference.partition("/")
        if not separator or "/" in version or not all(0 < len(part) <= LONGEST_PART for part in (name, version)):
            raise ValueError("the RID of a personality is orn:agent.personality:<name>/<version>")
        return cls(name, version)


def require_writable(text: str) -> None:
    """Check that a RID is short, and has no characters that cannot be shown.

    Raises:
        ValueError: it is not.
    """
    if len(text) > LONGEST:
        raise ValueError(f"a RID may have at most {LONGEST} characters")
    if not text.isprintable():
        raise ValueError("a RID may have no control characters")


def of_type(kind: RIDType) -> BeforeValidator:
    """A validator, before that of rid-lib, that refuses RIDs of other types.

    rid-lib keeps a class for every type that it reads, so it must not read whatever other nodes make up.
    """

    def check(value: Any) -> Any:
        if isinstance(value, str):
            require_writable(value)
            if not value.startswith(f"{kind}:"):
                raise ValueError(f"it is not a RID of the type {kind}")
        return value

    return BeforeValidator(check)
