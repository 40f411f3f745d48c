"""Many changes of definitions at once: all of them are made, or none."""

from __future__ import annotations

from asyncio import to_thread
from typing import Annotated, Any

from pydantic import Field

from workbench.definition_files import RegistryDraft
from workbench.definition_files.group import Replacement, replace_together
from workbench.errors import Unavailable, WorkbenchError
from workbench.ops import Ctx, collect, dispatch
from workbench.rules.definitions.comparison import differences
from workbench.services.definitions import lifecycle, sections, templates, transfer, versions
from workbench.services.definitions.changes import Action, exclusive, save
from workbench.services.definitions.operation import DefinitionAnswer, definition_op
from workbench.services.definitions.versions import ChangedFile

ATTEMPTS = 5
"""How often the changes are tried while others change the same definitions."""

OPERATIONS = {
    name: operation
    for name, operation in collect([lifecycle, sections, templates, transfer, versions]).items()
    if not operation.reads
}
"""The operations that can be combined: each changes definitions, and nothing else."""


class BulkStep(DefinitionAnswer):
    """A change: a tool such as agent_add_rule, with its arguments."""

    tool: str = Field(max_length=100, description="The name of the tool.")
    arguments: dict[str, Any] = Field(description="Its arguments.")


class ChangedAgent(DefinitionAnswer):
    """A definition that is changed. `changes`: its files that differ."""

    path: str
    action: Action
    changes: list[ChangedFile]


class Bulk(DefinitionAnswer):
    """What the changes did, or would do. `results`: the answer to each of them."""

    success: bool = True
    message: str
    dry_run: bool
    results: list[dict[str, Any]]
    agents: list[ChangedAgent]


@definition_op(destructive=True)
async def agent_bulk(
    ctx: Ctx,
    changes: Annotated[
        list[BulkStep],
        Field(min_length=1, max_length=500, description="Tools that change agent definitions, in order."),
    ],
    dryRun: Annotated[bool, Field(strict=True, description="true: only show what would change.")] = False,
) -> Bulk:
    """Change agent definitions by several tools, all or nothing: if one of them fails, nothing is changed.

    A later change sees the earlier ones. It takes the tools that create, change, clone, import, restore or delete.
    """
    for _ in range(ATTEMPTS):
        draft = RegistryDraft(ctx.definitions)
        results = [await _draft(ctx._replace(definitions=draft), n, step) for n, step in enumerate(changes, 1)]
        if dryRun or await ctx.local.repositories.shielded(_commit(ctx, draft)):
            agents = await to_thread(_changed_agents, draft)
            message = (
                f"{'Dry run, nothing changed' if dryRun else 'Done'}. Agents: {len(agents)}; tools: {len(results)}."
            )
            return Bulk(message=message, dry_run=dryRun, results=results, agents=agents)
    raise Unavailable("DEFINITION_BUSY", "The agents are being changed all the time. Try again.")


async def _draft(ctx: Ctx, number: int, step: BulkStep) -> dict[str, Any]:
    """Make a change in the draft.

    Raises:
        WorkbenchError: that of the operation; `details.change` is the number of the change, from 1.
    """
    try:
        return await dispatch(OPERATIONS, ctx, step.tool, step.arguments)
    except WorkbenchError as error:
        message = f"Change {number} ({step.tool}), so nothing is changed: {error.message}"
        raise error.with_message(message, change=number) from error


async def _commit(ctx: Ctx, draft: RegistryDraft) -> bool:
    replacements = draft.replacements()
    async with exclusive(ctx, *(replacement.directory for replacement in replacements)):
        if not await to_thread(replace_together, replacements):
            return False
        await save(ctx, *draft.records)
        return True


def _changed_agents(draft: RegistryDraft) -> list[ChangedAgent]:
    """The definitions that a draft changes. Blocks."""
    return [
        ChangedAgent(
            path=draft.display_path(replacement.directory.path),
            action=_action(replacement),
            changes=_files(replacement),
        )
        for replacement in draft.replacements()
    ]


def _action(replacement: Replacement) -> Action:
    if replacement.before is None:
        return "created"
    return "deleted" if replacement.after is None else "changed"


def _files(replacement: Replacement) -> list[ChangedFile]:
    if replacement.before is None or replacement.after is None:
        return []
    files = differences(replacement.before, replacement.after)
    return [ChangedFile(path=file.path, status=file.status, patch=file.patch) for file in files]
