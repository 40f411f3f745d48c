"""What differs between two states of a profile."""

from __future__ import annotations

import json
from typing import Any

from workbench.model import Json, Wire
from workbench.rules.personalities.profile import PersonalityProfile, PersonalityTrait

ADDRESSES = ("node_rid", "base_url", "mcp_url")


class Field(Wire):
    """A field with another value. A value that it did not have before, or no longer has, is None."""

    name: str
    before: Json
    after: Json


class ChangedTrait(Wire):
    """A trait that both states have, with its fields that differ."""

    name: str
    fields: list[Field]


class ProfileDifference(Wire):
    """What the later of two states of a profile has added, removed and changed; `fields`: of the profile itself."""

    added: list[PersonalityTrait] = []
    removed: list[PersonalityTrait] = []
    changed: list[ChangedTrait] = []
    fields: list[Field] = []

    @property
    def is_empty(self) -> bool:
        """Whether the states are the same."""
        return not (self.added or self.removed or self.changed or self.fields)


def difference(before: PersonalityProfile | None, after: PersonalityProfile | None) -> ProfileDifference:
    """What differs; the order of traits does not count. None: there is no profile."""
    old = {trait.name: trait for trait in before.traits} if before else {}
    new = {trait.name: trait for trait in after.traits} if after else {}
    both = sorted(old.keys() & new.keys())
    return ProfileDifference(
        added=[new[name] for name in sorted(new.keys() - old.keys())],
        removed=[old[name] for name in sorted(old.keys() - new.keys())],
        changed=[ChangedTrait(name=n, fields=found) for n in both if (found := _fields(old[n], new[n]))],
        fields=_addresses(before, after) if before and after else [],
    )


def _fields(before: PersonalityTrait, after: PersonalityTrait) -> list[Field]:
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return [Field(name=name, before=old[name], after=new[name]) for name in old if not _is_same(old[name], new[name])]


def _addresses(before: PersonalityProfile, after: PersonalityProfile) -> list[Field]:
    old, new = (one.model_dump(mode="json", include={*ADDRESSES}) for one in (before, after))
    return [Field(name=name, before=old[name], after=new[name]) for name in ADDRESSES if old[name] != new[name]]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 1 and True are not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
