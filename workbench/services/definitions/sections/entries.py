"""Changes of the lists of a definition whose items have names: rules, references and exported tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, Field

from workbench.errors import Conflict, NotFound
from workbench.rules.definitions.model import Definition, EntryChanges, PromptEntry
from workbench.services.definitions.changes import updated

Section = Literal["rules", "references", "tools"]
Edit = Callable[[Definition], Definition]
NewEntry = Annotated[PromptEntry, Field(description="Name, text, description, priorityLevel and include.")]
EntryUpdate = Annotated[EntryChanges, Field(description="What is to be changed; all else stays.")]


class Named(Protocol):
    """An item of a list."""

    @property
    def name(self) -> str:
        """Its name, unique in the list; upper and lower case are the same."""
        ...


N = TypeVar("N", bound=Named)


def find(items: Sequence[N], name: str) -> N | None:
    """The item with exactly this name."""
    return next((item for item in items if item.name == name), None)


def adding(section: Section, item: Named) -> Edit:
    """The change that adds an item. It raises Conflict ``ALREADY_EXISTS``."""

    def edit(definition: Definition) -> Definition:
        items = getattr(definition, section)
        _require_free(section, items, item.name)
        return updated(definition, **{section: [*items, item]})

    return edit


def updating(section: Section, name: str, changes: BaseModel) -> Edit:
    """The change of an item; `changes` has the fields that are set. It raises NotFound ``NOT_FOUND``, Conflict
    ``ALREADY_EXISTS`` (its new name is taken) and BadInput ``VALIDATION_ERROR``.
    """

    def edit(definition: Definition) -> Definition:
        items = getattr(definition, section)
        old = require(section, items, name)
        fields = changes.model_dump(exclude_unset=True, by_alias=False)
        others = [item for item in items if item is not old]
        if "name" in fields:
            _require_free(section, others, fields["name"])
        new = old.model_dump(by_alias=False) | fields
        return updated(definition, **{section: [new if item is old else item for item in items]})

    return edit


def deleting(section: Section, name: str) -> Edit:
    """The change that deletes an item. It raises NotFound ``NOT_FOUND``."""

    def edit(definition: Definition) -> Definition:
        items = getattr(definition, section)
        old = require(section, items, name)
        return updated(definition, **{section: [item for item in items if item is not old]})

    return edit


def require(section: Section, items: Sequence[Any], name: str) -> Any:
    """The item with exactly this name.

    Raises:
        NotFound: ``NOT_FOUND``.
    """
    item = find(items, name)
    if item is None:
        names = ", ".join(item.name for item in items) or "none"
        raise NotFound("NOT_FOUND", f"There is no {_noun(section)} {name!r}. Its {section}: {names}.")
    return item


def _require_free(section: Section, items: Sequence[Any], name: str) -> None:
    taken = next((item.name for item in items if item.name.lower() == name.lower()), None)
    if taken is not None:
        raise Conflict("ALREADY_EXISTS", f"There is already a {_noun(section)} {taken!r}. Update it, or choose a name.")


def _noun(section: Section) -> str:
    return section.removesuffix("s")
