"""`wb.help`: what operations do, take and return."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.cli.tools.schemas import arguments_table, result_table
from workbench.errors import NotFound
from workbench.model import Level
from workbench.ops import collect
from workbench.ops.operation import Op
from workbench.present.tables import Table, TablePage
from workbench.rules.naming import suggestion
from workbench.services import SERVICES

WHO = {
    Level.ANONYMOUS: "anyone",
    Level.READ: "agents",
    Level.WORKER: "agents that may write",
    Level.PLANNER: "planners",
    Level.OPERATOR: "the operator",
}
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "tasks": ("tasks", "attempts"),
    "approvals": ("approvals", "reviews", "undo"),
    "worktrees": ("worktrees", "integration"),
    "agents": ("agents", "spawning", "processes"),
    "runs": ("runs",),
    "definitions": ("definitions",),
    "tools": ("tools",),
    "chat": ("conversations",),
    "personalities": ("personalities",),
    "spaces": ("spaces",),
    "sharing": ("sharing", "insight"),
    "access": ("access",),
    "panel": ("saved_views",),
}
"""What operations are about, and the services that have them; what is used most comes first."""
EXAMPLES = 3
NOTE = (
    'wb.help("tasks") lists the operations about tasks, and wb.help("create_task") describes one of them. '
    "`%workbench --help` lists the commands. wb.tasks, wb.agents, wb.runs and the like are lists to use without either."
)


def described(name: str | None) -> Table | TablePage:
    """An operation, the operations about a subject, or the subjects.

    Raises:
        NotFound: ``UNKNOWN_OPERATION``.
    """
    operations = collect(SERVICES)
    subjects = _by_subject(operations)
    if name is None:
        return _overview(subjects)
    if name in subjects:
        rows = [[operation.name, _who(operation), operation.summary] for operation in subjects[name]]
        note = f'wb.help("{subjects[name][0].name}") describes the first of them.'
        return Table(["operation", "who may call it", "what it does"], rows, note=note)
    if name not in operations:
        hint = suggestion(name, [*operations, *subjects]).rstrip() or "wb.help() lists the subjects."
        raise NotFound("UNKNOWN_OPERATION", f"There is no operation {name!r}. {hint}")
    return _page(operations[name])


def subjects() -> list[str]:
    """What `described` takes besides the names of operations."""
    return list(_by_subject(collect(SERVICES)))


def _by_subject(operations: Mapping[str, Op]) -> Mapping[str, list[Op]]:
    """The operations about each subject; a service that is not placed is a subject of its own."""
    subject_of = {service: subject for subject, services in SUBJECTS.items() for service in services}
    by_subject: dict[str, list[Op]] = {subject: [] for subject in SUBJECTS}
    for operation in operations.values():
        service = operation.fn.__module__.removeprefix("workbench.services.").partition(".")[0]
        by_subject.setdefault(subject_of.get(service, service), []).append(operation)
    return {subject: group for subject, group in by_subject.items() if group}


def _overview(subjects: Mapping[str, list[Op]]) -> Table:
    """How many operations there are about each subject, and some of them."""
    names = {subject: [operation.name for operation in group] for subject, group in subjects.items()}
    rows = [
        [subject, len(group), f"{', '.join(group[:EXAMPLES])}{', …' * (len(group) > EXAMPLES)}"]
        for subject, group in names.items()
    ]
    return Table(["subject", "operations", "such as"], rows, note=NOTE)


def _page(operation: Op) -> TablePage:
    """Its help, arguments and result."""
    about = Table([], [], f"{operation.help}\n\nWho may call it: {_who(operation)}.")
    return TablePage(
        [
            (operation.name, about),
            ("Arguments", arguments_table(operation.input_schema)),
            ("Result", result_table(operation.output_schema)),
        ],
        {"name": operation.name, "arguments": operation.input_schema, "result": operation.output_schema},
    )


def _who(operation: Op) -> str:
    """Who may call it."""
    return WHO[Level(operation.allow)]
