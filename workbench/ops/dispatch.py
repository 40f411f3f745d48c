"""Runs operations: find, authorise, validate, run. Only this module decides who may call what."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from workbench.errors import BadInput, Hint, NotFound, Refused, Unauthenticated, Unavailable
from workbench.model import Capability, Level
from workbench.ops.caller import Caller
from workbench.ops.context import Ctx
from workbench.ops.operation import Catalogue, Op
from workbench.rules import access
from workbench.rules.naming import suggestion
from workbench.rules.wire import json_safety


async def dispatch(
    catalogue: Catalogue, ctx: Ctx, name: str, arguments: Mapping[str, Any], *, decoded: bool = False
) -> dict[str, Any]:
    """Find, authorise, validate and run an operation; the result is JSON-ready.

    Args:
        decoded: the arguments come from `json_safety.decode` and need no further check.

    Raises:
        NotFound: ``UNKNOWN_OPERATION``.
        Unauthenticated: ``TOKEN_REQUIRED``.
        Refused: ``NOT_ASSIGNED``, ``REJECTED``, ``GRANT_EXPIRED``, ``TOOL_DISABLED``, ``FORBIDDEN``.
        BadInput: ``INVALID_ARGUMENTS``. Unavailable: ``NO_SERVER``, ``DISK_FULL``.
        WorkbenchError: whatever the operation raises.
    """
    op = catalogue.get(name)
    if op is None:
        raise _unknown(catalogue, ctx.caller, name)
    authorise(op, ctx.caller)
    if not decoded:
        _require_json(op, arguments)
    valid = op.validate(arguments)
    if ctx.caller.level is not Level.OPERATOR:
        valid |= {name: _without_secrets(ctx, valid[name]) for name in op.said & valid.keys()}
    if op.needs_server and ctx.local.server is None:
        raise Unavailable(
            "NO_SERVER",
            "",
            Hint(name, "{} needs the running servers. Start them with `%workbench start` or `workbench serve`."),
        )
    try:
        answer = await op.fn(ctx, **valid)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        place = f" for {error.filename}" if error.filename else ""
        raise Unavailable("DISK_FULL", f"The disk has no space{place}. Free some space, then try again.") from error
    result: dict[str, Any] = op.result.serializer.to_python(answer, mode="json")
    return result


def _without_secrets(ctx: Ctx, value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_copy(update=ctx.secrets.masked(value.model_dump(exclude_unset=True)))
    return ctx.secrets.masked(value)


def _unknown(catalogue: Catalogue, caller: Caller, name: str) -> NotFound:
    meant = suggestion(name, (op.name for op in catalogue.values() if op.permits(caller)))
    return NotFound(
        "UNKNOWN_OPERATION",
        f"There is no operation {name!r}. {meant}".rstrip(),
        Hint("", "GET /api/ops lists those you may call.", "docs/reference.md lists them."),
    )


def _require_json(op: Op, arguments: Mapping[str, Any]) -> None:
    """Refuse values that cannot be sent as JSON: stored, they would break every list that contains them."""
    try:
        json_safety.check(dict(arguments))
    except ValueError as error:
        raise BadInput(op.invalid, f"{op.name}: the arguments are not JSON: {error}.", problems=[]) from None


BARS = {
    "NOT_ALLOWLISTED": "it is not on the allowlist. Ask the operator to add it.",
    "GRANT_EXPIRED": "its grant has expired. Ask the operator to extend it.",
    "TOOL_DISABLED": "the tool it was granted is disabled. Ask the operator to enable it.",
}


_LACKS = {
    Capability.DEFINITIONS: "its grant does not include definitions. Ask the operator to add it.",
    Capability.OWN_DEFINITION: "it has no definition of its own, or its self tools are off.",
    Capability.CHANGE_OWN_DEFINITION: "it has no definition of its own that it may change.",
    Capability.OWN_PERSONALITY: "its grant does not include it. Ask the operator to add update_traits to its tools.",
    Capability.TOOLS: "its grant includes no tools. Ask the operator to add some.",
}


def authorise(op: Op, caller: Caller) -> None:
    """Refuse a caller that may not call an operation.

    Raises:
        Unauthenticated: ``TOKEN_REQUIRED``.
        Refused: ``NOT_ASSIGNED``, ``REJECTED``, ``GRANT_EXPIRED``, ``TOOL_DISABLED``, ``FORBIDDEN``.
    """
    if op.permits(caller):
        return
    if caller.barred:
        raise Refused(caller.barred, f"{caller.name} may not do this now: {BARS[caller.barred]}")
    if caller.level >= op.allow and op.requires is not None:
        raise Refused("FORBIDDEN", f"{caller.name} may not call {op.name}: {_LACKS[op.requires]}")
    if caller.level > Level.ANONYMOUS:
        raise Refused(
            "FORBIDDEN",
            "",
            Hint(
                op.name,
                f"{{}} requires the level {op.allow.name.lower()}; {caller.name} has the level "
                f"{caller.level.name.lower()}. If it needs more, ask the operator to change its grant.",
            ),
        )
    if caller.rejection is not None:
        raise access.rejected(caller.rejection)
    if caller.agent is not None:
        raise Refused(
            "NOT_ASSIGNED",
            f"{caller.name} is not admitted yet.",
            Hint("registration_status", "Wait for the decision with {}."),
        )
    raise Unauthenticated("TOKEN_REQUIRED", "", Hint(op.name, "{} needs a token. Register to get one."))
