"""What a function returns, as the answer of a tool: text for models and, if it declares its result, a JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import PydanticSerializationError, to_json

from workbench.errors import Unavailable
from workbench.model import Json, Wire
from workbench.rules.reasons import reason
from workbench.rules.tools.results import as_json
from workbench.rules.wire import json_safety

RESULT = "result"
"""The property that holds a result that is no object: structured results of MCP tools are objects."""


class Form(StrEnum):
    """What the value of an answer is: a text for models only, an object that fits the schema, or the property `RESULT`
    of one."""

    TEXT = "text"
    OBJECT = "object"
    WRAPPED = "wrapped"


class Answer(Wire):
    """The answer of one call."""

    value: Annotated[Json, Field(description="The result as JSON.")]
    form: Form = Form.TEXT

    @property
    def text(self) -> str:
        """What a model reads."""
        return self.value if isinstance(self.value, str) else to_json(self.value).decode()

    @property
    def structured(self) -> dict[str, Any] | None:
        """The object that fits the schema; None if the function declares none."""
        match self.form:
            case Form.TEXT:
                return None
            case Form.OBJECT:
                return dict(self.value)
            case Form.WRAPPED:
                return {RESULT: self.value}


@dataclass(frozen=True)
class Returned:
    """What a function declares to return.

    Args:
        adapter: validates and serializes it; None if nothing is declared that has a JSON Schema.
        schema: JSON Schema (2020-12) of `Answer.structured`.
        form: that of the answers.
    """

    adapter: TypeAdapter[Any] | None = None
    schema: Mapping[str, Any] | None = None
    form: Form = Form.TEXT

    def answer(self, value: Any, limit: int) -> Answer:
        """A result as an answer. Takes time for a large result.

        Args:
            limit: the most bytes of JSON.

        Raises:
            Unavailable: ``TOOL_RESULT_TOO_LARGE``; ``TOOL_RESULT_INVALID``: it is not what is declared.
        """
        text = as_json(value) if self.adapter is None else _serialized(self.adapter, value)
        _require_size(len(text.encode()), limit)
        return Answer(value=_decoded(text), form=self.form)


def returned(annotation: Any) -> Returned:
    """What the annotation of a function's result declares."""
    if annotation in (None, type(None), Any):
        return Returned()
    try:
        adapter = TypeAdapter(annotation)
        schema = adapter.json_schema(mode="serialization")
    except (PydanticUserError, PydanticInvalidForJsonSchema):
        return Returned()
    if schema.get("type") == "object":
        return Returned(adapter, schema, Form.OBJECT)
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    wrapped = {"type": "object", "properties": {RESULT: schema}, "required": [RESULT], **definitions}
    return Returned(adapter, wrapped, Form.WRAPPED)


def _serialized(adapter: TypeAdapter[Any], value: Any) -> str:
    try:
        return adapter.dump_json(adapter.validate_python(value)).decode()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _bad(f"{where}: {reason(first)}" if where else reason(first)) from None
    except PydanticSerializationError as error:
        raise _bad(str(error)) from None


def _decoded(text: str) -> Any:
    try:
        return json_safety.decode(text)
    except ValueError as error:
        raise _bad(str(error)) from None


def _require_size(size: int, limit: int) -> None:
    if size > limit:
        raise Unavailable(
            "TOOL_RESULT_TOO_LARGE",
            f"The tool returned {size:,} bytes; at most {limit:,} are passed on. Let it return less, or write a file "
            "and return its path.",
            size=size,
            limit=limit,
        )


def _bad(reason: str) -> Unavailable:
    return Unavailable("TOOL_RESULT_INVALID", f"The tool returned something else than it declares: {reason}.")
