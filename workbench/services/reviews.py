"""Requests for changes: a person's comments on lines of a worktree, and the agents' way to read them."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from workbench.errors import BadInput
from workbench.git import Repository
from workbench.model import Int64, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules import notebook_diff
from workbench.rules import reviews as rules
from workbench.rules.integration import WorktreeAction
from workbench.services import approvals
from workbench.services.messages import inbox
from workbench.services.tasks.creation import add_task
from workbench.services.tasks.task import NewTask
from workbench.services.worktrees.imports import commit_of, import_new_commits
from workbench.services.worktrees.rows import KIND, WorktreeName, require_here, require_worktree, require_worktree_for
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

MOST = 200
"""The most requests that are read at once; the newest ones count."""
LARGEST_FILE = 16 << 20
"""Bytes of a larger file are not read: comments on it are outdated."""

Side = Literal["new", "old"]
Line = Annotated[Int64, Field(ge=1, description="Counts from 1.")]


class NewComment(Wire):
    """A comment on lines of a file."""

    path: Annotated[
        str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00]+$", description="As get_worktree_diff has it.")
    ]
    line: Line
    end_line: Annotated[Line | None, Field(description="The last line, included; null: only one line.")] = None
    side: Annotated[Side, Field(description="Which lines: those that it has now, or that it removed.")] = "new"
    text: Annotated[str, Field(min_length=1, max_length=10_000, description="What to change, and why.")]


class QuotedComment(Wire):
    """A comment and the lines it is about (`quoted`).

    `outdated`: those lines have changed since. `current_line` is where they stand now. `cell`: the cell of a notebook
    that has them, empty in other files.
    """

    path: str
    line: int
    end_line: int | None
    side: Side
    text: str
    quoted: list[str]
    outdated: bool
    current_line: int | None
    cell: str


class ChangeRequest(Wire):
    """What a person asks to be changed in a worktree. `commits_since`: commits after `commit`, to which it refers."""

    id: int
    worktree: str
    approval_id: int | None
    commit: str
    commits_since: int
    note: str
    comments: list[QuotedComment]
    task_id: int | None
    requested_by: str
    person: str | None
    requested_at: Micros


class ChangeRequests(Wire):
    """Requests for changes, the newest first."""

    requests: list[ChangeRequest]


@op(allow=Level.OPERATOR, command="request-changes")
async def request_changes(
    ctx: Ctx,
    worktree_name: WorktreeName,
    comments: Annotated[list[NewComment], Field(max_length=200, description="Comments on lines.")] = [],
    note: Annotated[str, Field(max_length=10_000, description="What to change, about all of it.")] = "",
    commit: Annotated[
        str | None,
        Field(pattern=r"^[0-9a-f]{40,64}$", description="What the comments are about; null: the newest commit."),
    ] = None,
    persona_id: Annotated[
        str | None, Field(description="Also create a task in the worktree for this persona, with the comments as text.")
    ] = None,
) -> ChangeRequest:
    """Request changes in a worktree. Its agents are told; a pending approval stays open and shows the request."""
    if not comments and not note.strip():
        raise BadInput("NOTHING_REQUESTED", "Say what to change: comments on lines, a note, or both.", problems=[])
    row = require_here(ctx, await ctx.read(lambda tx: require_worktree_for(tx, worktree_name, WorktreeAction.APPROVE)))
    repository = await ctx.local.repositories.open()
    await import_new_commits(ctx, repository, [row])
    subject = await to_thread(_subject, repository, row, commit)
    quoted, cells = await to_thread(_quote_all, repository, subject, comments)

    def change(tx: Tx) -> int:
        require_worktree_for(tx, worktree_name, WorktreeAction.APPROVE)
        new = NewRequest(worktree_name, subject, note.strip(), comments, quoted, cells, persona_id)
        return _add(tx, ctx, new)

    request_id = await ctx.write(change)
    (request,) = await _requests(ctx, repository, lambda tx: tx.all(SQL.one, id=request_id))
    return request


@op(allow=Level.READ, reads=True, command="worktrees changes", refreshed_by="worktree approval clock")
async def get_requested_changes(
    ctx: Ctx,
    worktree_name: Annotated[WorktreeName | None, Field(description="Null: all active worktrees.")] = None,
) -> ChangeRequests:
    """Get what a person asks to be changed in a worktree: comments with file and line, the newest request first."""

    def newest(tx: Reader, limit: int = MOST) -> list[Row]:
        if worktree_name is None:
            return tx.all(SQL.of_active_worktrees, limit=limit)
        require_worktree(tx, worktree_name)
        return tx.all(SQL.of_worktree, worktree=worktree_name, limit=limit)

    if not await ctx.read(lambda tx: newest(tx, limit=1)):
        return ChangeRequests(requests=[])
    repository = await ctx.local.repositories.open()
    return ChangeRequests(requests=await _requests(ctx, repository, newest))


class Subject(NamedTuple):
    """The commit that a request is about, and the one where its branch was forked."""

    commit: str
    base: str


class NewRequest(NamedTuple):
    """A request to be stored; `quoted` has the lines of each comment, `cells` the cell of a notebook, or nothing."""

    worktree: str
    about: Subject
    note: str
    comments: Sequence[NewComment]
    quoted: Sequence[Sequence[str]]
    cells: Sequence[str]
    persona_id: str | None


def _subject(repository: Repository, row: Row, commit: str | None) -> Subject:
    """Blocks on git.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``.
    """
    newest = repository.commit(commit) if commit else commit_of(repository, row["branch_name"])
    target = repository.resolve(row["integration_target"])
    return Subject(newest, (repository.merge_base(target, newest) if target else None) or row["base_commit"] or newest)


def _quote_all(
    repository: Repository, about: Subject, comments: Sequence[NewComment]
) -> tuple[list[list[str]], list[str]]:
    """The lines that each comment is about, and the cell that has them. Blocks on git.

    Raises:
        BadInput: ``LINES_NOT_FOUND``.
    """
    read = _reader(repository)
    quoted, cells = [], []
    for comment in comments:
        lines = read(about.commit if comment.side == "new" else about.base, comment.path)
        quoted.append(rules.quote(comment.path, lines, comment.line, comment.end_line or comment.line))
        is_notebook = comment.path.endswith(".ipynb")
        cells.append((is_notebook and notebook_diff.cell_at("\n".join(lines or []), comment.line)) or "")
    return quoted, cells


def _add(tx: Tx, ctx: Ctx, new: NewRequest) -> int:
    person = approvals.person_of(ctx)
    approval = approvals.open_question(tx, KIND, f"worktree:{new.worktree}")
    task_id = _add_task(tx, ctx, new) if new.persona_id else None
    row = tx.one(
        SQL.add,
        worktree=new.worktree,
        approval_id=approval.id if approval else None,
        commit_id=new.about.commit,
        base_id=new.about.base,
        note=new.note,
        task_id=task_id,
        person=person,
        by=tx.actor,
        now=tx.now,
    )
    assert row is not None
    request_id = int(row["id"])
    tx.many(
        SQL.add_comment,
        [
            _comment_row(request_id, number, *comment)
            for number, comment in enumerate(zip(new.comments, new.quoted, new.cells, strict=True), 1)
        ],
    )
    _announce(tx, new, request_id, person, approval)
    for task in tx.all(SQL.open_tasks, worktree=new.worktree):
        if task["id"] != task_id:  # which has the comments as its text
            inbox.send(tx, ctx, "comment", _message(ctx, new), task["holder"], task["id"])
    return request_id


def _add_task(tx: Tx, ctx: Ctx, new: NewRequest) -> int:
    task = NewTask(
        title=f"Change {new.worktree} as requested",
        description=rules.as_text(new.note, new.comments, new.cells),
        persona_id=new.persona_id or "",
        target_worktree=new.worktree,
    )
    return add_task(tx, ctx, task)


def _comment_row(request_id: int, number: int, new: NewComment, quoted: Sequence[str], cell: str) -> dict[str, object]:
    place = {"path": new.path, "side": new.side, "first": new.line, "last": new.end_line or new.line}
    text = {"quoted": json.dumps(list(quoted)), "comment": new.text, "cell": cell}
    return {"request": request_id, "number": number, **place, **text}


def _announce(
    tx: Tx, new: NewRequest, request_id: int, person: str | None, approval: approvals.ApprovalInfo | None
) -> None:
    """Tell the agents: those with open tasks in the worktree, and the one that requested its integration."""
    name = new.worktree
    data = {"worktree": name, "request_id": request_id, "comments": len(new.comments), "note": new.note[:500]}
    tx.emit("worktree.changes_requested", f"worktree:{name}", **data, **({"person": person} if person else {}))
    for task in tx.all(SQL.open_tasks, worktree=name):
        tx.emit("task.changes_requested", f"task:{task['id']}", session=task["session_id"], **data)
    if approval:
        approvals.note_changes(tx, approval, request_id)


def _message(ctx: Ctx, new: NewRequest) -> str:
    """What the agents of a worktree are told, as long as a message may be."""
    text = f"Changes are requested in {new.worktree}.\n\n{rules.as_text(new.note, new.comments, new.cells)}"
    whole: str = ctx.secrets.masked(text)
    if len(whole.encode()) <= ctx.settings.max_message_bytes:
        return whole
    return f"Changes are requested in {new.worktree}: {len(new.comments)} comments. get_requested_changes has them."


async def _requests(ctx: Ctx, repository: Repository, select: Callable[[Reader], list[Row]]) -> list[ChangeRequest]:
    def query(tx: Reader) -> tuple[list[Row], list[Row], dict[str, Row]]:
        rows = select(tx)
        comments = tx.all(SQL.comments, requests=json.dumps([row["id"] for row in rows]))
        return rows, comments, {row["worktree"]: require_worktree(tx, row["worktree"]) for row in rows}

    rows, comments, worktrees = await ctx.read(query)
    await import_new_commits(ctx, repository, list(worktrees.values()))
    return await to_thread(_current_requests, repository, rows, comments, worktrees)


def _current_requests(
    repository: Repository, rows: Sequence[Row], comments: Sequence[Row], worktrees: Mapping[str, Row]
) -> list[ChangeRequest]:
    """The requests, with what has become of the lines they are about. Blocks on git."""
    read = _reader(repository)
    tips = repository.heads(row["branch_name"] for row in worktrees.values())
    heads = {name: tips.get(row["branch_name"]) for name, row in worktrees.items()}
    since = {name: _commits_since(repository, head, name, rows) for name, head in heads.items() if head}
    requests = []
    for row in rows:
        head = heads[row["worktree"]] or row["commit_id"]
        of_request = [comment for comment in comments if comment["request_id"] == row["id"]]
        requests.append(
            ChangeRequest(
                id=row["id"],
                worktree=row["worktree"],
                approval_id=row["approval_id"],
                commit=row["commit_id"],
                commits_since=since.get(row["worktree"], {}).get(row["commit_id"], 0),
                note=row["note"],
                comments=[_comment(comment, read(head, comment["path"])) for comment in of_request],
                task_id=row["task_id"],
                requested_by=row["requested_by"],
                person=row["person"],
                requested_at=row["requested_at"],
            )
        )
    return requests


def _commits_since(repository: Repository, head: str, worktree: str, rows: Sequence[Row]) -> dict[str, int]:
    """Of the commits that the requests in a worktree are about: how many came after each."""
    return repository.count_since(head, {row["commit_id"] for row in rows if row["worktree"] == worktree} - {head})


def _comment(row: Row, lines: list[str] | None) -> QuotedComment:
    quoted = json.loads(row["quoted"])
    at = rules.locate(lines, quoted, row["first_line"])
    is_new = row["side"] == "new"
    return QuotedComment(
        path=row["path"],
        line=row["first_line"],
        end_line=row["last_line"] if row["last_line"] != row["first_line"] else None,
        side=row["side"],
        text=row["comment"],
        quoted=quoted,
        outdated=(at is None) if is_new else (at is not None),  # a removed line that is there again
        current_line=at if is_new else None,
        cell=row["cell"],
    )


def _reader(repository: Repository) -> Callable[[str, str], list[str] | None]:
    """Reads the lines of a file at a commit, each file once."""

    @cache
    def lines(commit: str, path: str) -> list[str] | None:
        text = repository.text_at(commit, path, LARGEST_FILE)
        return None if text is None else text.split("\n")[: -1 if text.endswith("\n") else None]

    return lines
