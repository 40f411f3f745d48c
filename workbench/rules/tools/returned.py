"""What a function returns, as the answer of a tool: text for models and, if it declares its result, a JSON object."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import to_json

from workbench.errors import Unavailable
from workbench.model import Json, Wire
from workbench.rules.plain import NotPlain, Plain
from workbench.rules.reasons import reason
from workbench.rules.tools.arguments import problems
from workbench.rules.wire import json_safety

RESULT = "result"
"""The property that holds a result that is no object: structured results of MCP tools are objects."""


class Form(StrEnum):
    """What the value of an answer is: a text for models only, an object that fits the schema, or the property `RESULT`
    of one."""

    TEXT = "text"
    OBJECT = "object"
    WRAPPED = "wrapped"


class ReturnedValue(Wire):
    """The answer of one call."""

    value: Annotated[Json, Field(description="The result as JSON.")]
    form: Form = Form.TEXT
    more: Annotated[
        list[dict[str, Any]], Field(description="MCP content besides it: pictures, and what was cut, in words.")
    ] = []

    @property
    def text(self) -> str:
        """What a model reads."""
        return self.value if isinstance(self.value, str) else to_json(self.value).decode()

    @property
    def content(self) -> list[dict[str, Any]]:
        """All of it as content of MCP. A picture that is all there is has no text beside it."""
        is_alone = self.value is None and bool(self.more)
        return [*([] if is_alone else [{"type": "text", "text": self.text}]), *self.more]

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
        adapter: validates it; None if nothing is declared that has a JSON Schema.
        writer: serializes a list of it, with the numbers that JSON has not: a list, as only that has a configuration.
        schema: JSON Schema (2020-12) of `ReturnedValue.structured`.
        form: that of the answers.
    """

    adapter: TypeAdapter[Any] | None = None
    writer: TypeAdapter[Any] | None = None
    schema: Mapping[str, Any] | None = None
    form: Form = Form.TEXT

    def answer(self, value: Any, limit: int, rows: int) -> ReturnedValue:
        """A result as an answer. Takes time for a large result.

        Args:
            limit: the most bytes of JSON.
            rows: the most rows of a table and items of an array, unless the function declares what it returns.

        Raises:
            Unavailable: ``TOOL_RESULT_TOO_LARGE``; ``TOOL_RESULT_INVALID``: it is not what is declared, or JSON has no
                form of it.
        """
        plain = _Result(rows=rows if self.adapter is None else None, pictures=[])
        made = self._serialized(plain, value) if self.adapter is not None else _converted(plain, value)
        text = _encoded(made)
        pictures = [_picture(media, content) for media, content in plain.pictures or ()]
        _require_size(len(text) + sum(len(picture["data"]) for picture in pictures), limit)
        answer = ReturnedValue(value=_decoded(text), form=self.form, more=[*pictures, *_cut(plain.cut)])
        if plain.has_no_number and self.schema is not None:
            _require_fit(self.schema, answer)
        return answer

    def _serialized(self, plain: Plain, value: Any) -> Any:
        assert self.adapter is not None
        assert self.writer is not None
        try:
            valid = _valid(self.adapter, plain, value)
            [made] = self.writer.dump_python([valid], mode="json", fallback=plain.of)
            return plain.of(made)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise _bad(f"{where}: {reason(first)}" if where else reason(first)) from None
        except ValueError as error:  # also of the serializer
            raise _bad(str(error)) from None


@dataclass
class _Result(Plain):
    """A result. `has_no_number`: a text is in place of a number that JSON has not."""

    has_no_number: bool = False

    def not_finite(self, value: float) -> Any:
        """NaN or an infinity."""
        self.has_no_number = True
        return super().not_finite(value)


def returned(annotation: Any) -> Returned:
    """What the annotation of a function's result declares."""
    if annotation in (None, type(None), Any):
        return Returned()
    try:
        adapter = TypeAdapter(annotation)
        schema = adapter.json_schema(mode="serialization")
        writer = TypeAdapter(list[annotation], config=ConfigDict(ser_json_inf_nan="constants"))
    except (PydanticUserError, PydanticInvalidForJsonSchema):
        return Returned()
    if schema.get("type") == "object":
        return Returned(adapter, writer, schema, Form.OBJECT)
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    wrapped = {"type": "object", "properties": {RESULT: schema}, "required": [RESULT], **definitions}
    return Returned(adapter, writer, wrapped, Form.WRAPPED)


def _valid(adapter: TypeAdapter[Any], plain: Plain, value: Any) -> Any:
    """A value that is what is declared, or an object of a library that is so as JSON, such as a table."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        try:
            return adapter.validate_python(plain.of(value))
        except (ValidationError, NotPlain):
            raise error from None


def _converted(plain: Plain, value: Any) -> Any:
    try:
        return plain.of(value)
    except NotPlain as error:
        raise _bad(f"{error}. Return numbers, texts, dates, lists, dicts, tables or pictures") from None


def _encoded(made: Any) -> bytes:
    try:
        return to_json(made)
    except ValueError as error:  # text that is not Unicode
        raise _bad(str(error)) from None


def _picture(media: str, content: bytes) -> dict[str, Any]:
    return {"type": "image", "data": b64encode(content).decode(), "mimeType": media}


def _cut(what: Sequence[str]) -> list[dict[str, Any]]:
    if not what:
        return []
    text = f"Cut: {'; '.join(what)}. The setting max_tool_rows says how many are passed on."
    return [{"type": "text", "text": f"{text} Ask for fewer, or let the function declare what it returns."}]


def _require_fit(schema: Mapping[str, Any], answer: ReturnedValue) -> None:
    """Refuse a text in place of a number that is declared."""
    found = problems(json.dumps(schema), answer.structured or {})
    if found:
        raise _bad(f"{found[0]['field']} {found[0]['reason']}, and JSON has no NaN and no infinity")


def _decoded(text: bytes) -> Any:
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
    return Unavailable("TOOL_RESULT_INVALID", f"The tool returned what cannot be passed on: {reason}.")
