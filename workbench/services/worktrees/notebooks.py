"""The outputs of notebooks in a review: what a person is shown of them, and nothing that a page would run."""

from __future__ import annotations

from asyncio import to_thread
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import BadInput, Hint
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules import integration, notebook_outputs
from workbench.rules.notebook_diff import UNREADABLE
from workbench.services.worktrees.places import checkout_of, is_there, place_of, worktree_gone
from workbench.services.worktrees.rows import WorktreeName, require_here, require_worktree

FilePath = Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00]+$")]


class NotebookOutput(Wire):
    """An output: a picture (`data` in base64), a text, or why it is left out (`text`)."""

    form: Literal["picture", "text", "left_out"]
    text: str
    media_type: str | None
    data: str


class ChangedOutputs(Wire):
    """A cell whose outputs differ, with its places before and after, from 1; null where it is not. `stale`: those after
    were made by other code than the cell has after a merge."""

    place: int | None
    old_place: int | None
    before: list[NotebookOutput]
    after: list[NotebookOutput]
    stale: bool


class NotebookOutputs(Wire):
    """The cells of a notebook whose outputs a worktree changed."""

    cells: list[ChangedOutputs]


@op(allow=Level.READ, reads=True, tool=False)
async def get_worktree_outputs(
    ctx: Ctx,
    worktree_name: WorktreeName,
    path: Annotated[FilePath, Field(description="The notebook, as get_worktree_diff has it.")],
    old_path: Annotated[FilePath | None, Field(description="Its former path, if it was renamed.")] = None,
    uncommitted: Annotated[bool, Field(description="Uncommitted changes instead of committed ones.")] = False,
    since: Annotated[
        str | None, Field(pattern=r"^[0-9a-f]{40,64}$", description="Only what was committed after this commit.")
    ] = None,
) -> NotebookOutputs:
    """Get the outputs that a worktree changed in a notebook, before and after: pictures and text, no HTML."""
    row = require_here(ctx, await ctx.read(lambda tx: require_worktree(tx, worktree_name)))
    repository = await ctx.local.repositories.open()
    limit = ctx.settings.max_notebook_bytes
    if uncommitted:
        place = place_of(ctx, row)
        if row["status"] not in integration.OPEN or not await to_thread(is_there, place):
            raise worktree_gone(place)
        checkout = await to_thread(checkout_of, ctx.settings, repository, place)
        versions = await to_thread(checkout.notebook_versions, path, old_path, limit)
    else:
        base = row["integration_target"] if row["status"] in integration.OPEN else row["base_commit"]
        versions = await to_thread(
            repository.notebook_versions, since or base, row["branch_name"], path, old_path, limit
        )
    if versions is None:
        says = f"{path} has more than max_notebook_bytes ({limit:,}). Open it in its worktree, or raise the setting."
        raise BadInput("NOTEBOOK_TOO_LARGE", says)
    settings = ctx.settings
    allowance = notebook_outputs.Allowance(settings.max_output_picture_bytes, settings.max_outputs_bytes)
    try:
        changed = await to_thread(notebook_outputs.changed_outputs, *versions, allowance)
    except UNREADABLE:
        says = f"The cells of {path} cannot be compared: it is no notebook of format 4 as programs of Jupyter write it."
        raise BadInput("NOT_A_NOTEBOOK", says, Hint("get_worktree_diff", "{} shows its text.")) from None
    return NotebookOutputs(cells=[ChangedOutputs.model_validate(asdict(cell)) for cell in changed])
