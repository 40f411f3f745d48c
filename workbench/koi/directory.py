"""The personalities that this node knows, in memory: a copy of the store for frequent readers, such as lists of tools.

It finds the latest version of a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from workbench.rules.personalities.profile import PersonalityProfile, PersonalityTrait


@dataclass(frozen=True, slots=True)
class KnownPersonality:
    """A personality.

    Args:
        manifest_at: the time of its manifest, microseconds UTC.
        is_own: it is one of this node's.
    """

    profile: PersonalityProfile
    manifest_at: int
    is_own: bool


class PersonalityDirectory:
    """Personalities by RID. The latest of a name is the one whose manifest is newest."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, KnownPersonality]] = {}

    def put(self, known: KnownPersonality) -> None:
        """Add a personality, or replace it."""
        rid = known.profile.rid
        self._by_name.setdefault(rid.name, {})[rid.version] = known

    def remove(self, name: str, version: str) -> None:
        """Forget a version."""
        versions = self._by_name.get(name, {})
        versions.pop(version, None)
        if not versions:
            self._by_name.pop(name, None)

    def replace(self, all_known: Iterable[KnownPersonality]) -> None:
        """Replace all personalities by these."""
        self._by_name.clear()
        for known in all_known:
            self.put(known)

    def latest(self) -> Iterator[KnownPersonality]:
        """The latest version of every name, by name."""
        for name in sorted(self._by_name):
            yield _latest(self._by_name[name])

    def find(self, name: str) -> KnownPersonality | None:
        """The latest version of a name."""
        versions = self._by_name.get(name)
        return _latest(versions) if versions else None

    def versions(self, name: str) -> list[KnownPersonality]:
        """All versions of a name, the latest first."""
        return sorted(self._by_name.get(name, {}).values(), key=_age, reverse=True)

    def callable(self) -> Iterator[tuple[KnownPersonality, PersonalityTrait]]:
        """The callable traits of the latest versions."""
        return ((known, trait) for known in self.latest() for trait in known.profile.tools)


def _latest(versions: dict[str, KnownPersonality]) -> KnownPersonality:
    return max(versions.values(), key=_age)


def _age(known: KnownPersonality) -> tuple[int, str]:
    return known.manifest_at, known.profile.rid.version
