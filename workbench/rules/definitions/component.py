"""The base of the parts of a definition, and of what there is to choose from for them.

Alone: the parts of a definition and its model both build on it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Component(BaseModel):
    """Immutable, no unknown fields, camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,
    )
