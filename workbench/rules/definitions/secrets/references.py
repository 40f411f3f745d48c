"""Secret references: a configuration says where a secret is, not what it is. Nothing is resolved here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_REFERENCE = re.compile(r"((?:Bearer|Basic|Token|token) )?(env|file|op|keyring)://(\S.*)", re.DOTALL)
_OF_SERVER = re.compile(r"(args|url)\.(?=[A-Za-z])")
"""What precedes the names of flags and of keys in addresses."""


class SecretSource(StrEnum):
    """Where secrets are kept: a variable of the server's environment, a file, 1Password, or the system's keyring."""

    ENV = "env"
    FILE = "file"
    ONE_PASSWORD = "op"
    KEYRING = "keyring"


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A reference to a secret, such as ``env://NAME``, ``file://path``, ``op://vault/item/field``,
    ``keyring://service/name``.

    Args:
        scheme: what precedes the secret in a header, as in ``Bearer env://NAME``, with a blank.
    """

    source: SecretSource
    place: str
    scheme: str = ""

    def __str__(self) -> str:
        return f"{self.source}://{self.place}"


def parse(value: str) -> SecretReference | None:
    """The reference that a value is; None for a literal."""
    found = _REFERENCE.fullmatch(value)
    return SecretReference(SecretSource(found[2]), found[3], found[1] or "") if found else None


def variable(name: str, owner: str = "") -> str:
    """A reference to a variable of the environment that is named like a key, after its owner."""
    name = _OF_SERVER.sub("", name)
    words = re.sub(r"\W+", "_", f"{owner}_{name}" if owner else name, flags=re.ASCII)
    return f"env://{words.strip('_').upper()}"
