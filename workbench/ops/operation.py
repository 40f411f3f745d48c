"""One operation is one function, marked with `@op`: its signature is the schema, its docstring the help.

It is at once an MCP tool, a WebSocket action, `POST /api/ops/<name>`, `workbench call <name>` and `wb.call("<name>")`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import FunctionType, ModuleType
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import ErrorDetails

from workbench.errors import BadInput
from workbench.model import Capability, Level, Wire
from workbench.ops.caller import Caller
from workbench.ops.presentation import Command, RestRoute
from workbench.rules.naming import similar
from workbench.rules.reasons import reason

Fn = TypeVar("Fn", bound=Callable[..., Awaitable[BaseModel]])
FIRST = 5
"""How many problems a message has; `details.problems` has all."""


class _PlainSchema(GenerateJsonSchema):
    """JSON Schema without the titles that pydantic derives from names (agents pay for every byte), with the
    description of a value that may be null where the value itself is described, without defaults that are null, and
    without `oneOf`, which some clients do not know."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        json_schema = super().default_schema(schema)
        if "default" in json_schema and json_schema["default"] is None:
            del json_schema["default"]
        return json_schema

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        json_schema = super().nullable_schema(schema)
        for branch in json_schema.get("anyOf", ()):
            if "description" in branch:
                json_schema["description"] = branch.pop("description")
        return json_schema

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        json_schema = super().tagged_union_schema(schema)
        return {"anyOf": json_schema["oneOf"]} if "oneOf" in json_schema else json_schema

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        json_schema = super().generate(schema, mode)
        for described in (json_schema, *json_schema.get("$defs", {}).values()):
            described.pop("title", None)
        return json_schema


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operation, as shells see it."""

    name: str
    fn: Callable[..., Awaitable[BaseModel]]
    allow: Level
    reads: bool
    destructive: bool
    needs_server: bool
    tool: bool
    requires: Capability | None = None
    invalid: str = "INVALID_ARGUMENTS"
    attended: bool = False
    commands: tuple[Command, ...] = field(default=(), compare=False)
    typed: str = ""
    rest: RestRoute | None = None
    refreshed_by: tuple[str, ...] = ()

    def permits(self, caller: Caller) -> bool:
        """Whether a caller may call it."""
        return caller.level >= self.allow and (self.requires is None or self.requires in caller.capabilities)

    @property
    def title(self) -> str:
        """The name, as it is shown to people."""
        return self.name.replace("_", " ").capitalize()

    @property
    def summary(self) -> str:
        """First line of the help."""
        return self.help.partition("\n")[0]

    @property
    def help(self) -> str:
        """The docstring."""
        return inspect.getdoc(self.fn) or ""

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model that validates arguments; unknown ones are refused."""
        hints = get_type_hints(self.fn, include_extras=True)
        fields: dict[str, Any] = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in list(inspect.signature(self.fn).parameters.items())[1:]
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of the arguments."""
        return frozenset(self.arguments.model_fields)

    @cached_property
    def said(self) -> frozenset[str]:
        """The names of the arguments that are marked as `SAID`."""
        return frozenset(name for name, field in self.arguments.model_fields.items() if SAID in field.metadata)

    def waits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments may wait until something happens."""
        if self.attended:
            return True
        wait = self.arguments.model_fields.get("wait_seconds")
        return wait is not None and bool(arguments.get("wait_seconds", wait.default))

    @cached_property
    def result(self) -> TypeAdapter[Any]:
        """Turns what the function returns into JSON-ready data."""
        return TypeAdapter(get_type_hints(self.fn, include_extras=True)["return"])

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema (2020-12) of the arguments."""
        return self.arguments.model_json_schema(schema_generator=_PlainSchema)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema (2020-12) of the result."""
        return self.result.json_schema(mode="serialization", schema_generator=_PlainSchema)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The names of the arguments that are numbers, for which true is no value."""
        types = {name: set(_types(schema)) for name, schema in self.input_schema["properties"].items()}
        return frozenset(name for name, of in types.items() if of and of <= {"integer", "number", "null"})

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as the function takes them.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``, or the operation's own code; `details.problems` names field and reason,
                never values.
        """
        if true := [name for name, value in arguments.items() if isinstance(value, bool) and name in self.numbers]:
            problems = [{"field": name, "reason": "must be a number"} for name in true]
            raise invalid_arguments(self.name, problems, self.invalid)
        try:
            return vars(self.arguments.model_validate(arguments))
        except ValidationError as error:
            raise invalid_arguments(self.name, problems_of(error, known=self.parameters), self.invalid) from None


def _types(schema: Mapping[str, Any]) -> Iterator[str]:
    """The JSON types that a schema names, also in its alternatives."""
    if "type" in schema:
        yield schema["type"]
    elif "anyOf" not in schema:
        yield "any"
    for other in schema.get("anyOf", ()):
        yield from _types(other)


Catalogue = Mapping[str, Op]

SAID = "said"
"""Marks a parameter as text that is recorded to be read: of what agents give, secrets are not recorded. What is run, or
sent to a program or model, is not marked: it is never changed.
"""


def problems_of(error: ValidationError, *within: str, known: Iterable[str] = ()) -> list[dict[str, str]]:
    """What pydantic found wrong, as `details.problems`: field (a path that begins with `within`) and reason.

    Args:
        known: the names at the top level; the first problems suggest those like an unknown name.
    """
    errors = error.errors(include_url=False)
    return [
        {"field": ".".join(map(str, (*within, *e["loc"]))), "reason": _reason(e, known if n < FIRST else ())}
        for n, e in enumerate(errors)
    ]


def _reason(problem: ErrorDetails, known: Iterable[str]) -> str:
    is_unknown = problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1
    meant = similar(str(problem["loc"][0]), known) if is_unknown else ""
    return f"{reason(problem)} (did you mean {meant}?)" if meant else reason(problem)


def first_problems(problems: Sequence[Mapping[str, str]]) -> str:
    """The first problems, for a message."""
    return "; ".join(f"{p['field']}: {p['reason']}" for p in problems[:FIRST])


def invalid_arguments(name: str, problems: list[dict[str, str]], code: str = "INVALID_ARGUMENTS") -> BadInput:
    """The error for arguments that an operation does not take."""
    return BadInput(code, f"{name}: {first_problems(problems)}.", problems=problems)


def op(
    *,
    allow: Level,
    reads: bool = False,
    destructive: bool = False,
    needs_server: bool = False,
    tool: bool = True,
    requires: Capability | None = None,
    invalid: str = "INVALID_ARGUMENTS",
    attended: bool = False,
    command: str | Command | tuple[str | Command, ...] = (),
    rest: RestRoute | None = None,
    refreshed_by: str = "",
) -> Callable[[Fn], Fn]:
    """Make a coroutine function `(ctx: Ctx, …) -> Wire` an operation of its own name.

    Args:
        allow: the lowest level that may call it.
        reads: it changes nothing.
        destructive: it ends or discards something that cannot be restored.
        needs_server: it works only where the servers run; elsewhere it raises ``NO_SERVER``.
        tool: it is offered to agents as an MCP tool.
        requires: what a caller needs besides the level.
        invalid: the code of the error for arguments that it does not take.
        attended: it may take any time, and is cancelled when its caller leaves.
        command: the commands that are one call of it. Text is the words of a command that is written by hand and runs
            it. Errors name the first.
        rest: its REST endpoint.
        refreshed_by: the nouns of the events after which it returns something else, as in ``agent session``; `clock`:
            some of it changes with time, without an event.
    """
    ways = command if isinstance(command, tuple) else (command,)
    commands = tuple(way for way in ways if isinstance(way, Command))
    typed = next((way if isinstance(way, str) else way.typed for way in ways), "")

    def mark(fn: Fn) -> Fn:
        fn.op = Op(  # type: ignore[attr-defined]
            name=fn.__name__,
            fn=fn,
            allow=allow,
            reads=reads,
            destructive=destructive,
            needs_server=needs_server,
            tool=tool,
            requires=requires,
            invalid=invalid,
            attended=attended,
            commands=commands,
            typed=typed,
            rest=rest,
            refreshed_by=tuple(refreshed_by.split()),
        )
        return fn

    return mark


def collect(services: Iterable[ModuleType]) -> Catalogue:
    """The operations in packages and modules, by name, in alphabetical order; names are unique."""
    catalogue: dict[str, Op] = {}
    for fn in functions_of(services):
        operation = getattr(fn, "op", None)
        if isinstance(operation, Op):
            if operation.name in catalogue:
                raise TypeError(f"two operations are named {operation.name}")
            catalogue[operation.name] = operation
    return dict(sorted(catalogue.items()))


def functions_of(services: Iterable[ModuleType]) -> Iterator[FunctionType]:
    """The functions that are defined in modules, and for packages also in the submodules that they import.

    They are looked for once; each module has been imported to its end.
    """
    for service in services:
        yield from _functions_of(service)


@cache
def _functions_of(service: ModuleType) -> tuple[FunctionType, ...]:
    # Looking takes several milliseconds, and each project that is opened asks twice.
    names = tuple(vars(service).values())
    own = (fn for fn in names if isinstance(fn, FunctionType) and fn.__module__ == service.__name__)
    below = (value for value in names if isinstance(value, ModuleType))
    return (*own, *functions_of(m for m in below if m.__name__.startswith(f"{service.__name__}.")))


class Ok(Wire):
    """Success, without further data."""

    ok: bool = True
