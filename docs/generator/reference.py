"""The page `docs/reference.md`, from the registries and the syntax trees of the code."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from docs.generator import ROOT, commands
from docs.generator.op_codes import EVERYWHERE, codes_in, codes_of, parsed
from kernel_ext.objects import mistakes
from workbench import errors
from workbench.analytics import views
from workbench.analytics.reports import STANDARD
from workbench.ops import Op, collect
from workbench.ops.dispatch import BARS
from workbench.services import SERVICES
from workbench.services.personalities.refusals import RefusalReason
from workbench.state.settings import Settings

PACKAGES = ("workbench", "kernel_ext")
FAMILIES = {cls.__name__: cls.status for cls in errors.WorkbenchError.__subclasses__()} | {"WorkbenchError": 500}
FAMILIES["Interrupted"] = errors.Interrupted.status
FAMILIES |= {cls.__name__: cls.status for cls in (mistakes.UnknownField, mistakes.NoSuchRow, mistakes.FieldReadOnly)}


def page() -> str:
    """The whole page."""
    sections = [
        "# Reference\n\nGenerated from the code by `make docs`; do not edit.",
        "## Operations\n\nEach operation is an MCP tool, a WebSocket action, `POST /api/ops/<name>`, "
        '`workbench call <name>` and `wb.call("<name>", …)`. Arguments in brackets are optional.\n\n' + _operations(),
        "## Settings\n\nSet a setting with the environment variable `WORKBENCH_<NAME>`, or with a line in "
        "`.aiswarm/settings.toml` or in your own `~/.config/workbench/settings.toml`; the first of these takes "
        "precedence. A setting marked with † counts from a project's file only after `workbench trust`. Times are in "
        "seconds, sizes in bytes.\n\n" + _settings(),
        "## Commands\n\nThose of a shell; each also has `--project`, `--json` and `--help`, which says what its "
        "options are for. `%workbench` has the same, but those that would block the kernel.\n\n"
        + _typed(commands.commands()),
        "## Magics\n\nWhat a notebook has besides the commands. `%%plan?` says what its options are for, and "
        "`%workbench panel --help` those of a command.\n\n" + _typed(commands.magics()),
        "## Reports\n\n`wb.report(NAME)`, `%workbench report NAME` and `workbench report NAME` make them. A report "
        "that compares groups takes another column of the view `tasks` with `--by`.\n\n" + _reports(),
        "## Views\n\nWhat `workbench sql`, `%%wsql` and `wb.sql` query with DuckDB; `workbench views NAME` shows one. "
        "Times have a time zone, that of the computer.\n\n" + _views(),
        "## Events\n\nThe kinds of events in the feed, named `<noun>.<past participle>`.\n\n"
        + "\n".join(f"- `{kind}`" for kind in event_kinds()),
        "## Errors by operation\n\nEvery operation may return "
        + " ".join(f"`{code}`" for code in sorted(EVERYWHERE))
        + ", and the `STORE_…` errors when the store cannot be used.\n\n"
        + _answers(),
        "## Error codes\n\nA code never changes its meaning. The status is the HTTP status. Where a code has several "
        "messages, the table has one of them; `…` stands for values.\n\n" + _codes(),
        "## Refusals\n\nWhy a message of another node of a KOI network, one event in it, or a call of a trait is "
        "refused. `get_peer` counts them by node.\n\n" + _refusals(),
    ]
    return "\n\n".join(sections) + "\n"


@cache
def event_kinds() -> list[str]:
    """All kinds of events that the code emits."""
    return sorted({kind for tree in _modules() for kind in emitted(tree)} | _events_of_spaces())


def _events_of_spaces() -> set[str]:
    from workbench.services.spaces import projects, sessions, space, teams

    kinds = (projects.PROJECT, sessions.SESSION, teams.TEAM)
    return {f"{kind.noun}.{change}" for kind in kinds for change in space.SpaceChange}


def emitted(module: ast.AST) -> set[str]:
    """The kinds that a module passes to `emit`, directly or through its variables and parameters."""
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    waiting = [call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "emit"]
    given = _given(module, calls) if waiting else {}
    seen: set[str] = set()
    kinds: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Constant) and re.fullmatch(r"[a-z_]+\.[a-z_]+", str(node.value)):
                kinds.add(str(node.value))
            elif isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                waiting += given[node.id]
    return kinds


def _given(module: ast.AST, calls: Sequence[ast.Call]) -> dict[str, list[ast.expr]]:
    """The values that each name of a module may have: assigned to it, or passed as an argument."""
    given: dict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=targets, value=value):
                places: list[ast.expr] = targets
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.For(target=target, iter=value):
                places = [target]
            case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
                for call in (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name):
                    for argument, value in zip([*args.posonlyargs, *args.args], call.args, strict=False):
                        given[argument.arg].append(value)
                    for keyword in call.keywords:
                        given[keyword.arg or ""].append(keyword.value)
                continue
            case _:
                continue
        for place in (one for target in places for one in ast.walk(target) if isinstance(one, ast.Name)):
            given[place.id].append(value)
    return given


@cache
def error_codes() -> dict[str, tuple[int, str]]:
    """All error codes, with their status and the message of their first use."""
    found: dict[str, tuple[int, str]] = {}
    for call in _calls():
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in FAMILIES and len(call.args) >= 2:
            for code in codes_in(call.args[0]):
                found.setdefault(code, (FAMILIES[name], _whole_message(call)))
    barred = {code: (errors.Refused.status, f"… may not do this now: {why}") for code, why in BARS.items()}
    return barred | found | _storage_codes()


def _storage_codes() -> dict[str, tuple[int, str]]:
    from workbench.store import postgres, postgres_errors, sqlite_errors

    on_sqlite = (*sqlite_errors.STORAGE_ERRORS.values(), sqlite_errors.UNSYNCED)
    causes = [cause for _, cause in postgres_errors.CAUSES]
    on_postgres = (*causes, *postgres_errors.STORAGE_ERRORS.values(), postgres_errors.LOST, postgres.UNCERTAIN)
    return {code: (errors.Unavailable.status, message) for code, message in (*on_postgres, *on_sqlite)}


def _operations() -> str:
    ops = collect(SERVICES).values()
    return _table(("operation", "minimum level", "arguments", "what it does"), [_operation(op) for op in ops])


def _answers() -> str:
    rows = [[f"`{op.name}`", " ".join(f"`{code}`" for code in codes_of(op))] for op in collect(SERVICES).values()]
    return _table(("operation", "codes"), rows)


def _operation(op: Op) -> list[str]:
    required = set(op.input_schema.get("required", ()))
    names = [name if name in required else f"[{name}]" for name in op.input_schema.get("properties", {})]
    return [f"`{op.name}`", op.allow.name.lower(), " ".join(names), " ".join(op.help.split())]


def _views() -> str:
    parts = []
    for view in views.described():
        rows = [[f"`{column.name}`", column.type.lower(), column.meaning] for column in view.columns]
        parts.append(f"### `{view.name}`\n\n{view.meaning}\n\n" + _table(("column", "type", "meaning"), rows))
    return "\n\n".join(parts)


def _typed(rows: Iterable[tuple[str, list[str], str]]) -> str:
    table = [[f"`{typed}`", " ".join(f"`{option}`" for option in options), about] for typed, options, about in rows]
    return _table(("typed", "options", "what it does"), table)


def _reports() -> str:
    rows = [
        [f"`{name}`", report.about, "yes" if report.picture else "", report.groups_by or ""]
        for name, report in sorted(STANDARD.items())
    ]
    return _table(("report", "what it shows", "picture", "compares by"), rows)


def _settings() -> str:
    marked = Settings.needing_trust(dict.fromkeys(Settings.names()))
    rows = [
        [f"`{name}`" + " †" * (name in marked), _default(field), str(field.description)]
        for name, field in sorted(Settings.model_fields.items())
    ]
    return _table(("setting", "default", "meaning"), rows)


def _default(field: Any) -> str:
    return "found from the current directory" if field.default_factory else f"{field.default}"


def _codes() -> str:
    rows = [[f"`{code}`", str(status), text] for code, (status, text) in sorted(error_codes().items())]
    return _table(("code", "status", "message"), rows)


def _refusals() -> str:
    return _table(("code", "meaning"), [[f"`{refusal}`", refusal.meaning] for refusal in sorted(RefusalReason)])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _calls() -> Iterator[ast.Call]:
    return (node for node in _nodes() if isinstance(node, ast.Call))


def _nodes() -> Iterator[ast.AST]:
    for module in _modules():
        yield from ast.walk(module)


@cache
def _modules() -> tuple[ast.Module, ...]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return tuple(map(parsed, paths))


def _whole_message(call: ast.Call) -> str:
    hints = [part for part in call.args[2:] if isinstance(part, ast.Call) and getattr(part.func, "id", "") == "Hint"]
    return " ".join(filter(None, (_message(call.args[1]), *map(_hint, hints))))


def _hint(call: ast.Call) -> str:
    operation, sentence = _message(call.args[0]), _message(call.args[1]) if len(call.args) > 1 else "{} lists them."
    if any(one.arg is None for one in call.keywords):
        operation += "…"
    given = {one.arg: getattr(one.value, "value", "…") for one in call.keywords if one.arg}
    return str(errors.Hint(operation, sentence, **given))


def _message(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return " ".join(text.split())
        case ast.JoinedStr(values=parts):
            return " ".join(
                "".join(_message(part) if isinstance(part, ast.Constant) else "…" for part in parts).split()
            )
        case ast.BinOp(left=left, right=right):
            return f"{_message(left)} {_message(right)}".strip()
    return "…"
