"""The reason of a refused value is in plain words, with a suggestion, and never contains the value."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from workbench.ops import collect
from workbench.rules.definitions.schema import DefinitionFile, of_file
from workbench.rules.reasons import PATTERNS, reason
from workbench.rules.tasks.plan.model import PlannedTask
from workbench.services import SERVICES


class State(StrEnum):
    PENDING = "pending"
    FAILED = "failed"


class Form(BaseModel):
    """One field of each kind."""

    model_config = ConfigDict(extra="forbid")

    state: State = State.PENDING
    form: Literal["yaml", "markdown"] = "yaml"
    only: Literal["decided"] = "decided"
    level: Literal[1, 2] = 1
    count: Annotated[int, Field(ge=0, le=1000)] = 0
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    name: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-z]+$")] = "a"
    id: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$")] = "a"
    pair: Annotated[list[str], Field(min_length=2, max_length=2)] = ["a", "b"]
    asked: bool = False
    extra: dict[str, int] = {}
    at: AwareDatetime | None = None
    even: int = 0

    @field_validator("even")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("state", "faild", "must be pending or failed (did you mean failed?)"),
        ("state", "secret", "must be pending or failed"),
        ("form", "makrdown", "must be yaml or markdown (did you mean markdown?)"),
        ("form", 7, "must be yaml or markdown"),
        ("only", "decidedd", "must be decided"),
        ("level", 3, "must be 1 or 2"),
        ("count", 1001, "must be at most 1000"),
        ("count", -1, "must be at least 0"),
        ("count", "many", "must be a whole number"),
        ("count", 1.5, "must be a whole number"),
        ("id", "be polite", "may have only letters, digits, _ and -"),
        ("share", 1, "must be less than 1"),
        ("share", 0, "must be greater than 0"),
        ("share", "half", "must be a number"),
        ("share", "nan", "must be a finite number"),
        ("name", "", "must not be empty"),
        ("name", "abcd", "must have at most 3 characters"),
        ("name", "A", "must match ^[a-z]+$"),
        ("name", 1, "must be text"),
        ("pair", ["a"], "must have at least 2 items"),
        ("pair", ["a", "b", "c"], "must have at most 2 items"),
        ("pair", "ab", "must be a list"),
        ("asked", "perhaps", "must be true or false"),
        ("extra", [], "must be an object"),
        ("at", "soon", "must be a time, such as 2026-05-01T09:30:00Z"),
        ("at", "2026-05-01T09:30:00", "must have a time zone, such as Z"),
        ("even", 3, "must be even"),
        ("colour", "red", "unknown name"),
    ],
)
def test_a_wrong_value_is_refused_in_plain_words(field: str, value: Any, why: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Form.model_validate({field: value})
    [problem] = refused.value.errors()
    assert reason(problem) == why


def test_a_problem_without_its_context_keeps_its_own_words() -> None:
    with pytest.raises(ValidationError) as refused:
        Form.model_validate({"state": "x"})
    [problem] = refused.value.errors(include_context=False, include_input=False)
    assert reason(problem) == "Input should be 'pending' or 'failed'"


def test_the_patterns_that_have_words_are_those_of_operations_definitions_and_plans() -> None:
    operations = [operation.input_schema for operation in collect(SERVICES).values()]
    files = [of_file(DefinitionFile.AGENT), PlannedTask.model_json_schema()]
    assert set(PATTERNS) <= set(patterns_in([*operations, *files]))


def patterns_in(schema: Any) -> Iterator[str]:
    """The patterns of a JSON schema, at any depth."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from patterns_in(part)
