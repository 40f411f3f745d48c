"""The suite's tools as tools of the catalogue: what they return, report and ask passes through all of Workbench."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.shells.mcp.suite.content import AUDIO, IMAGE, Block, as_json, resource, text
from workbench.model import Capability
from workbench.ops import OPERATOR, Ctx, dispatch
from workbench.services.tools.tool import (
    Hints,
    Offerer,
    OffererKind,
    ToolInfo,
    ToolInvocation,
    ToolKind,
    ToolOutcome,
    ToolPlace,
    ToolScope,
)

SECONDS_BETWEEN_REPORTS = 0.05
STRING: Block = {"type": "string"}
BOOLEAN: Block = {"type": "boolean"}
NOTHING: Block = {"type": "object", "properties": {}}
MESSAGE: Block = {"type": "object", "properties": {"message": STRING}, "required": ["message"]}
MIXED = [
    text("Multiple content types test:"),
    IMAGE,
    resource("test://mixed-content-resource", as_json({"test": "data", "value": 123}), "application/json"),
]
DEFAULTS: Block = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ONE_OF_THREE: Block = {"type": "string", "enum": ["option1", "option2", "option3"]}
NAMED = [{"const": f"value{n}", "title": f"{name} Option"} for n, name in enumerate(("First", "Second", "Third"), 1)]
CHOICES: Block = {
    "untitledSingle": ONE_OF_THREE,
    "titledSingle": {"type": "string", "oneOf": NAMED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": ONE_OF_THREE},
    "titledMulti": {"type": "array", "items": {"anyOf": NAMED}},
}
OF_2020: Block = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}},
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

Run = Callable[[Ctx, ToolInvocation], Awaitable[ToolOutcome]]


def saying(*blocks: Block) -> Run:
    """Return these."""

    async def say(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        return ToolOutcome([*blocks])

    return say


def asking(*forms: Block) -> Run:
    """Ask the client to fill in these forms, one after the other."""

    async def ask(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
        elicit, answers = call.surroundings.elicit, []
        if elicit is None:
            return ToolOutcome([text("The client cannot be asked.")], is_error=True)
        for properties in forms:
            schema = {"type": "object", "properties": properties, "required": [*properties]}
            answers.append(await elicit(str(call.arguments.get("message", "Please confirm.")), schema))
        return ToolOutcome([text(f"state-ok: {as_json(answers)}")])

    return ask


async def fail(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    return ToolOutcome([text("This tool intentionally returns an error for testing")], is_error=True)


async def report(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    for done in (0, 50, 100):
        if call.surroundings.progress is not None:
            await call.surroundings.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(SECONDS_BETWEEN_REPORTS)
    return ToolOutcome([text("It has reported.")])


async def change_tools(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Do what a source does when its tools have changed."""
    await ctx.write(lambda tx: tx.emit("tools.changed", "tools"))
    return ToolOutcome([text("The tools have changed.")])


async def change_prompts(ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Grant the caller something else."""
    caller = call.scope.caller
    changes = {"definitions": Capability.DEFINITIONS not in caller.capabilities}
    await dispatch(ctx.catalogue, ctx.of(OPERATOR), "update_agent", {"agent_id": caller.name, "changes": changes})
    return ToolOutcome([text("The prompts may have changed.")])


def tool(name: str, run: Run, parameters: Block = NOTHING) -> ToolInfo:
    """A tool that needs no permission."""
    offerer = Offerer(OffererKind.NOTEBOOK)
    return ToolInfo(
        name, name, parameters, ToolPlace.LOCAL, ToolKind.FUNCTION, run, offerer, hints=Hints(read_only=True)
    )


TOOLS = [
    tool("test_simple_text", saying(text("This is a simple text response for testing."))),
    tool("test_image_content", saying(IMAGE)),
    tool("test_audio_content", saying(AUDIO)),
    tool("test_embedded_resource", saying(resource("test://embedded-resource", "This is an embedded resource."))),
    tool("test_multiple_content_types", saying(*MIXED)),
    tool("test_error_handling", fail),
    tool("test_tool_with_progress", report),
    tool("test_elicitation", asking({"username": STRING, "email": STRING}), MESSAGE),
    tool("test_elicitation_sep1034_defaults", asking(DEFAULTS)),
    tool("test_elicitation_sep1330_enums", asking(CHOICES)),
    tool("test_streaming_elicitation", asking({"ok": BOOLEAN})),
    tool("test_input_required_result_request_state", asking({"ok": BOOLEAN})),
    tool("test_input_required_result_tampered_state", asking({"ok": BOOLEAN})),
    tool("test_input_required_result_multi_round", asking({"name": STRING}, {"color": STRING})),
    tool("json_schema_2020_12_tool", saying(text("It was called.")), OF_2020),
    tool("test_trigger_tool_change", change_tools),
    tool("test_trigger_prompt_change", change_prompts),
]


async def tools(ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
    return TOOLS


async def find(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
    return next((tool for tool in TOOLS if tool.name == name), None)
