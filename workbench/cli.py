"""The `workbench` command. `%workbench` in a notebook is the same tree (see `kernel_ext.magics`).

Each command returns what it has to show; `main` prints it, a notebook displays it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from workbench import __version__
from workbench.door import CommandLine, Door, explain
from workbench.errors import BadInput, WorkbenchError
from workbench.tables import Table

pass_door = click.pass_obj


@dataclass(frozen=True)
class Note:
    """A sentence for a person, and the data behind it."""

    message: str
    data: Any = None

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        import html

        return f"<p>{html.escape(self.message)}</p>"


Shown = Table | Note | None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--project", type=click.Path(path_type=Path, file_okay=False), help="Root directory of the project.")
@click.option("--json", "as_json", is_flag=True, help="Print data instead of tables.")
@click.version_option(__version__)
@click.pass_context
def cli(ctx: click.Context, project: Path | None, as_json: bool) -> None:
    """Run a team of AI agents from a Jupyter notebook."""
    if ctx.obj is None:
        ctx.obj = CommandLine(project, os.environ.get("WORKBENCH_TOKEN"))


@cli.command()
@pass_door
def status(door: Door) -> Shown:
    """What runs, who waits, how far the work is."""
    tree = door.call("get_task_tree")
    waiting = door.call("list_approvals")["approvals"]
    agents = door.call("list_agents")["agents"]
    rows = [
        ["project", door.settings.project],
        ["waiting for you", len(waiting)],
        ["agents", len(agents)],
        *[[f"tasks {state}", number] for state, number in sorted(tree["counts"].items())],
    ]
    return Table(["", ""], rows, data={"waiting": waiting, "agents": agents, "tasks": tree["counts"]})


@cli.command()
@click.option("--status", "state", default=None, help="Only agents in this state.")
@pass_door
def agents(door: Door, state: str | None) -> Shown:
    """List the agents."""
    columns = {
        "agent_id": "agent",
        "name": "name",
        "registration_status": "registration",
        "persona_id": "persona",
        "role": "role",
        "tool": "tool",
        "worktree": "worktree",
        "parent": "spawned by",
    }
    return Table.of(door.call("list_agents", status=state)["agents"], columns, "No agent has registered yet.")


@cli.command()
@click.option("--all", "everything", is_flag=True, help="Decided ones too.")
@pass_door
def approvals(door: Door, everything: bool) -> Shown:
    """List what waits for your decision."""
    found = door.call("list_approvals", status=None if everything else "pending")["approvals"]
    rows = [[a["id"], a["kind"], _about(a), a["requester"], a["status"]] for a in found]
    return Table(["id", "kind", "about", "asked by", "status"], rows, "Nothing waits for you.", found)


@cli.command()
@click.argument("approval_ids", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Everything that waits.")
@click.option("--kind", default=None, help="With --all: only registrations or integrations.")
@click.option("--id", "agent_id", default=None, help="The agent's id (registrations).")
@click.option("--persona", "persona_id", default=None, help="The agent's persona (registrations).")
@click.option("--role", default=None, help="worker or planner (registrations).")
@click.option("--tool", default=None, help="read or write (registrations).")
@pass_door
def approve(
    door: Door,
    approval_ids: tuple[int, ...],
    everything: bool,
    kind: str | None,
    agent_id: str | None,
    persona_id: str | None,
    role: str | None,
    tool: str | None,
) -> Shown:
    """Admit agents and merge worktrees that wait for you."""
    if everything:
        approval_ids = tuple(a["id"] for a in door.call("list_approvals", kind=kind)["approvals"])
    elif not approval_ids:
        raise click.UsageError("Name approvals by id, or give --all. `approvals` lists them.")
    choices = {"agent_id": agent_id, "persona_id": persona_id, "role": role, "tool": tool}
    given = {name: value for name, value in choices.items() if value is not None}
    made = [door.call("approve", approval_id=number, choices=given) for number in approval_ids]
    rows = [[m["approval"]["id"], m["approval"]["kind"], _outcome(m["outcome"])] for m in made]
    return Table(["id", "kind", "outcome"], rows, "Nothing waits for you.", made)


@cli.command()
@click.argument("approval_ids", type=int, nargs=-1, required=True)
@click.option("--reason", default="", help="What the asker is told.")
@pass_door
def reject(door: Door, approval_ids: tuple[int, ...], reason: str) -> Shown:
    """Turn down what waits for you."""
    made = [door.call("reject", approval_id=number, reason=reason) for number in approval_ids]
    return Note(f"Rejected {', '.join(map(str, approval_ids))}.", made)


@cli.command()
@click.argument("agent_id")
@click.option("--reason", default="", help="Kept in the history.")
@pass_door
def revoke(door: Door, agent_id: str, reason: str) -> Shown:
    """Take an agent's admission away."""
    return Note(
        f"{agent_id} is revoked; its token no longer works.",
        door.call("revoke_agent", agent_id=agent_id, reason=reason),
    )


@cli.command()
@click.option("--status", "state", default=None, help="Only tasks in this state.")
@click.option("--plan", "plan_name", default=None, help="Only tasks of this plan.")
@click.option("--limit", default=100, show_default=True, help="At most so many.")
@pass_door
def tasks(door: Door, state: str | None, plan_name: str | None, limit: int) -> Shown:
    """List the tasks."""
    columns = {
        "id": "id",
        "title": "title",
        "status": "status",
        "persona_id": "persona",
        "priority": "priority",
        "worktree": "worktree",
        "assigned_agent_id": "agent",
        "attempt": "attempt",
        "progress": "%",
    }
    found = door.call("list_tasks", status=state, plan=plan_name, limit=limit)["tasks"]
    return Table.of(found, columns, "There are no tasks. Create some with a plan.")


@cli.command()
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--name", default=None, help="Use this name instead of the plan's own.")
@pass_door
def plan(door: Door, file: Any, name: str | None) -> Shown:
    """Create the tasks of a YAML plan, all or none."""
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise BadInput("PLAN_INVALID", f"{file.name} is not text in UTF-8: {error.reason}.") from None
    return planned(door.call("create_plan", text=text, name=name))


@cli.command()
@click.argument("name", required=False)
@pass_door
def worktrees(door: Door, name: str | None) -> Shown:
    """List the worktrees with what they would bring."""
    found = door.call("get_worktree_status", worktree_name=name)["worktrees"]
    rows = [
        [
            w["name"],
            w["branch_name"],
            w["status"],
            w["ahead"],
            w["behind"],
            len(w["files"]),
            len(w["conflicts"]),
            w["open_tasks"],
        ]
        for w in found
    ]
    heads = ["worktree", "branch", "status", "ahead", "behind", "files", "conflicts", "open tasks"]
    return Table(heads, rows, "There is no active worktree.", found)


@cli.command()
@click.argument("name")
@click.option("--target", "target_branch", default=None, help="Default: the branch it was forked from.")
@pass_door
def integrate(door: Door, name: str, target_branch: str | None) -> Shown:
    """Ask for a worktree to be merged; `approve` then merges it."""
    asked = door.call("integrate_worktree", worktree_name=name, target_branch=target_branch)
    return Note(f"Approval {asked['approval_id']} merges {name} into {asked['target_branch']}.", asked)


@cli.command()
@click.argument("name")
@click.option("--reason", default="", help="Kept in the history.")
@pass_door
def discard(door: Door, name: str, reason: str) -> Shown:
    """Give a worktree up; its branch is kept."""
    made = door.call("discard_worktree", worktree_name=name, reason=reason)
    return Note(f"{name} is discarded; the branch {made['branch_name']} is kept.", made)


@cli.command()
@click.argument("persona_id")
@click.option("--worktree", "assigned_worktree", default=None, help="Where it works.")
@click.option("--name", default=None, help="What people will call it.")
@click.option("--mcp", is_flag=True, help="Let it talk MCP.")
@click.option("--ask", is_flag=True, help="Leave it at the desk instead of admitting it.")
@pass_door
def spawn(door: Door, persona_id: str, assigned_worktree: str | None, name: str | None, mcp: bool, ask: bool) -> Shown:
    """Start a worker process that runs the tasks' own commands."""
    made = door.call(
        "spawn_agent",
        persona_id=persona_id,
        assigned_worktree=assigned_worktree,
        name=name,
        mcp=mcp,
        approve="ask" if ask else "auto",
    )
    return Note(f"{made['agent_id']} runs as process {made['pid']}; it is {made['status']}.", made)


@cli.command()
@click.argument("agent_id")
@click.option("--reason", default="", help="Kept in the history.")
@pass_door
def terminate(door: Door, agent_id: str, reason: str) -> Shown:
    """End an agent's process and everything it started."""
    return Note(f"{agent_id} is ended.", door.call("terminate_agent", agent_id=agent_id, reason=reason))


@cli.command()
@click.option("--after", default=0, help="Only events with a larger id.")
@click.option("--kinds", default="*", help="Comma-separated: task.*, agent.registered, …")
@click.option("--limit", default=50, show_default=True, help="At most so many.")
@pass_door
def events(door: Door, after: int, kinds: str, limit: int) -> Shown:
    """List what happened."""
    found = door.call("list_events", after=after, kinds=kinds.split(","), limit=limit)["events"]
    columns = {"id": "id", "at": "at", "kind": "kind", "actor": "by", "subject": "about"}
    return Table.of(found, columns, "Nothing has happened yet.")


@cli.command()
@click.argument("query")
@pass_door
def sql(door: Door, query: str) -> Shown:
    """Ask DuckDB about the project (views: tasks, attempts, agents, events, …)."""
    from workbench.analytics.live import ask

    columns, rows = ask(door.settings, query)
    data = [dict(zip(columns, map(str, row), strict=True)) for row in rows]
    return Table(columns, rows, "No rows.", data)


@cli.command("call")
@click.argument("name")
@click.argument("arguments", nargs=-1)
@pass_door
def call_op(door: Door, name: str, arguments: tuple[str, ...]) -> Shown:
    """Call any operation: `call NAME key=value …` or `call NAME '{"key": value}'`."""
    made = door.call(name, **parse_arguments(arguments))
    return Note(json.dumps(made, indent=2, ensure_ascii=False), made)


@cli.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=None, help="0 lets the system choose.")
@pass_door
def serve(door: Door, port: int | None) -> Shown:
    """Run the servers here, without a notebook, until interrupted."""
    from workbench.shells.headless import run

    run(door.settings, port)
    return None


@cli.command()
@pass_door
def mcp(door: Door) -> Shown:
    """Serve MCP on standard input and output, for agents that start their own server."""
    from workbench.shells.stdio import run

    run(door.settings, os.environ.get("WORKBENCH_TOKEN"))
    return None


@cli.command()
@click.option("--repo", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Your git repository.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Your plan.")
@click.option("--workers", type=click.IntRange(1, 32), default=3, show_default=True, help="Processes at once.")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("demo-output"), help="For its results."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def demo(repo: Path | None, plan_file: Path | None, workers: int, output: Path, as_json: bool) -> Shown:
    """Run the quickstart notebook headless, from plan to merge, and say what came out."""
    from workbench.demo import run

    return run(repo, plan_file, workers, output)


def planned(made: dict[str, Any]) -> Table:
    """A created plan as a table."""
    rows = [[task_id, name] for name, task_id in made["tasks"].items()]
    return Table(["task", "name in the plan"], rows, data=made)


def parse_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """`key=value` pairs (values are JSON where they can be) or one JSON object.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    if len(arguments) == 1 and arguments[0].lstrip().startswith("{"):
        try:
            whole: dict[str, Any] = json.loads(arguments[0])
        except ValueError as error:
            raise BadInput("INVALID_ARGUMENTS", f"The arguments are not JSON: {error}.", problems=[]) from None
        return whole
    pairs = [argument.partition("=") for argument in arguments]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise BadInput("INVALID_ARGUMENTS", f"Give {wrong[0]} a value: {wrong[0]}=….", problems=[])
    return {key: _value(text) for key, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _about(approval: dict[str, Any]) -> str:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        return f"{payload['name']} wants to be {payload['suggested_id']} ({payload['persona_id'] or 'no persona'})"
    return f"{payload['branch']} into {payload['target']}: {payload['ahead']} commits"


def _outcome(outcome: dict[str, Any]) -> str:
    if "agent_id" in outcome:
        return f"{outcome['agent_id']} is {outcome['status']}"
    return f"{outcome['worktree']} is {outcome['state']}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `workbench` command; failures print a code and a next step, exit status 1."""
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    try:
        shown = cli.main(arguments, prog_name="workbench", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except WorkbenchError as error:
        click.echo(json.dumps(error.as_dict()) if as_json else explain(error), err=True)
        sys.exit(1)
    if isinstance(shown, Table | Note):
        click.echo(json.dumps(shown.data, indent=2, default=str) if as_json else repr(shown))


if __name__ == "__main__":
    main()
