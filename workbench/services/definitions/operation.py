"""Types and functions shared by operations on definitions. Fields and parameters are in camelCase, as in the spec."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic.alias_generators import to_camel

from workbench.errors import BadInput
from workbench.model import Capability, Level, Wire
from workbench.ops import first_problems, op, problems_of

M = TypeVar("M", bound=BaseModel)

definition_op = partial(op, allow=Level.PLANNER, requires=Capability.DEFINITIONS, invalid="VALIDATION_ERROR")
"""`op`, for the operator and for planners whose grant includes definitions."""

AgentTarget = Annotated[str, Field(min_length=1, max_length=1_000, description="Its path, id or name.")]
AgentPath = Annotated[
    str, Field(min_length=1, max_length=1_000, description="A new directory, such as ./agents/reviewer.")
]
NewPath = Annotated[
    str | None,
    Field(min_length=1, max_length=1_000, description="A new directory; null: one named like it, in ./agents."),
]
Confirm = Annotated[
    Any, Field(description="true: really do it."), WithJsonSchema({"type": "boolean", "description": "Must be true."})
]


class DefinitionAnswer(Wire):
    """Base of the results."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class DefinitionChanged(DefinitionAnswer):
    """A change that was made. `warnings` are about secrets that it has written out."""

    success: bool = True
    message: str
    warnings: list[str] = []


def validated(model: type[M], values: Mapping[str, Any]) -> M:
    """A model with values.

    Raises:
        BadInput: ``VALIDATION_ERROR``; `details.problems` names field and reason.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = problems_of(error)
        raise BadInput("VALIDATION_ERROR", f"{first_problems(problems)}.", problems=problems) from None


def require_confirmation(confirm: Any, what: str) -> None:
    """Refuse a call that is not confirmed: only `true` confirms it.

    Raises:
        BadInput: ``CONFIRMATION_REQUIRED``.
    """
    if confirm is not True:
        raise BadInput("CONFIRMATION_REQUIRED", f"{what} Send confirm: true to do it.")
