"""A Python function as a tool: its signature is the schema of the arguments, its docstring the description."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    create_model,
)

from workbench.errors import BadInput
from workbench.rules.plain import Plain
from workbench.rules.tools.libraries import is_foreign, taken
from workbench.rules.tools.names import NAME_LIMIT, is_local
from workbench.rules.tools.returned import Returned, returned

DESCRIPTION_LIMIT = 4_000
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class FunctionTool:
    """A function that is offered as a tool.

    Args:
        input_schema: JSON Schema (2020-12) of the arguments.
        arguments: validates the arguments.
        returned: makes answers of results.
        version: changes when the source of the function does.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    arguments: type[BaseModel]
    returned: Returned
    version: str
    fn: Callable[..., Any]

    @property
    def is_async(self) -> bool:
        """Whether calling it returns a coroutine, as a decorated asynchronous function does, too."""
        plain = inspect.unwrap(self.fn)
        return inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(type(plain).__call__)

    def bound(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as the function takes them.

        Raises:
            pydantic.ValidationError: they do not fit.
        """
        valid = self.arguments.model_validate(arguments)
        return {field.alias or name: getattr(valid, name) for name, field in type(valid).model_fields.items()}


def function_tool(fn: Callable[..., Any], name: str | None = None, description: str | None = None) -> FunctionTool:
    """The tool that a function is.

    Args:
        name: by default that of the function.
        description: by default the function's docstring.

    Raises:
        BadInput: ``BAD_TOOL``: its name or its signature does not suit a tool; the message says why.
    """
    chosen = name or str(getattr(fn, "__name__", ""))
    if not is_local(chosen):
        raise _bad(chosen, f"a name has up to {NAME_LIMIT} letters, digits, '-' and '_', and no '__' within it")
    try:
        hints = get_type_hints(fn, include_extras=True)
        arguments = _arguments(fn, chosen, hints)
        input_schema = arguments.model_json_schema()
    except PydanticSchemaGenerationError as error:
        kind = str(error).partition(" schema for ")[2].partition(". Set ")[0]
        raise _bad(
            chosen, f"JSON has no form of {kind}, which its signature has; take a text, number, list, dict or table"
        ) from None
    except (NameError, TypeError, PydanticUserError) as error:
        raise _bad(chosen, f"its signature is no JSON Schema: {error}") from None
    text = inspect.cleandoc(description if description is not None else fn.__doc__ or "")
    return FunctionTool(
        chosen, text[:DESCRIPTION_LIMIT], input_schema, arguments, returned(hints.get("return")), _version(fn), fn
    )


def _arguments(fn: Callable[..., Any], name: str, hints: Mapping[str, Any]) -> type[BaseModel]:
    """A model with a field for each parameter, which is its alias: some names, such as `json`, no field may have."""
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind not in _NAMED:
            raise _bad(name, f"its parameter {parameter} cannot be given by name")
        fields[f"p{len(fields)}"] = (taken(hints.get(parameter.name, Any)), _field(parameter))
    return create_model(name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)


def _field(parameter: inspect.Parameter) -> Any:
    """A parameter as a field; a default of a library, such as NumPy, is in the schema as JSON has it."""
    default, alias = parameter.default, parameter.name
    if default is parameter.empty:
        return Field(alias=alias)
    if is_foreign(type(default)):
        return Field(default_factory=lambda: default, alias=alias, json_schema_extra={"default": Plain().of(default)})
    return Field(default, alias=alias)


def _version(fn: Callable[..., Any]) -> str:
    """A hash of the source, or of what there is instead."""
    try:
        text = inspect.getsource(fn)
    except (OSError, TypeError):
        text = _compiled(getattr(fn, "__code__", None))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _compiled(code: CodeType | None) -> str:
    """The code of a function as text, without the addresses that its representation has."""
    if code is None:
        return ""
    constants = (_compiled(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts)
    return f"{code.co_code!r} {code.co_names!r} {' '.join(constants)}"


def _bad(name: str, reason: str) -> BadInput:
    return BadInput("BAD_TOOL", f"{name or 'This function'} cannot be a tool: {reason}.", name=name)
