"""Whether this machine has what Workbench needs: `doctor`."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import PartialFailure, Shown, agreed, pass_client, size
from workbench.errors import WorkbenchError
from workbench.model import wall_clock
from workbench.present.inert import inert
from workbench.present.tables import Table
from workbench.state.database_note import DatabaseNote
from workbench.state.settings import Settings
from workbench.trust import state_directory
from workbench.trust.withheld import notice

MEGABYTE = 1 << 20
GIGABYTE = 1 << 30
SCARCE = 1 * GIGABYTE
GIT_SECONDS = 10.0
KEY_SECONDS = 5.0
PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "gemini": "google.genai", "bedrock": "boto3"}
"""The packages that the models of each provider need; those of `ollama` need that of `openai`."""
EXTRA = "workbench-agents[chat]"
AGENTS = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}


@root.command()
@click.option("--fix", is_flag=True, help="Mend what is wrong in the project: each change is shown first, and asked.")
@click.option("--yes", is_flag=True, help="With --fix: mend everything without a question.")
@pass_client
def doctor(client: OperatorClient, fix: bool, yes: bool) -> Shown:
    """Check what this machine has and lacks. Exit status 1: something necessary is missing, or the store is damaged.

    It also finds rows, leases, worktrees and references of the project that do not fit each other.
    """
    if fix:
        return _fixed(client, yes)
    checks = [*_checks(client)]
    is_bad = any(mark in ("missing", "damaged") for mark, _, _ in checks)
    data = [dict(zip(("state", "what", "says"), row, strict=True)) for row in checks]
    return (PartialFailure if is_bad else Table)(["", "", ""], [list(row) for row in checks], data=data)


def _checks(client: OperatorClient) -> Iterator[tuple[str, str, str]]:
    yield "ok", "Python", platform.python_version()
    yield _git(client)
    yield _confinement(client)
    yield "ok", "project", str(client.settings.project)
    yield _state(client)
    yield _store(client)
    yield _consistency(client)
    yield _trust(client)
    yield _server(client)
    yield _disk(client)
    yield from _notifications(client)
    is_there = find_spec("jupyterlab") is not None
    yield _optional(is_there, "JupyterLab", "installed", "not installed: the panels need it (`pip install jupyterlab`)")
    yield _chat()
    from workbench.confinement.traces import INSTALL

    where = shutil.which("strace")
    yield _optional(bool(where), "strace", str(where), f"not installed: {INSTALL}")
    yield from _keys(client)
    for command, name in AGENTS.items():
        where = shutil.which(command)
        yield _optional(bool(where), name, str(where), f"no `{command}` in PATH: its profile cannot be used")


def _fixed(client: OperatorClient, yes: bool) -> Shown:
    """Mend faults one after the other: what each was, and what was done."""
    client.require_operator("doctor --fix")
    state_directory.check(client.settings.project)
    rows = list(_mended(client, yes))
    is_bad = any(mark == "left" for mark, _, _ in rows)
    data = [dict(zip(("state", "what", "says"), row, strict=True)) for row in rows]
    if not rows:
        return Table(["", "", ""], [], "Nothing is wrong in the project.", data=data)
    return (PartialFailure if is_bad else Table)(["", "", ""], [list(row) for row in rows], data=data)


def _mended(client: OperatorClient, yes: bool) -> Iterator[tuple[str, str, str]]:
    state, _, says = _store(client)
    if state == "missing":
        yield "left", "store", says
    if state == "damaged":
        mended = _restored(client.settings, says, yes)
        yield mended
        state = "ok" if mended[0] == "mended" else state
    if state != "ok":
        return
    asked = set[tuple[str, ...]]()
    while new := [fault for fault in _faults(client) if tuple(fault.values()) not in asked]:
        for fault in new:  # mending one may show others
            asked.add(tuple(fault.values()))
            yield _mend(client, fault, yes)


def _mend(client: OperatorClient, fault: Mapping[str, str], yes: bool) -> tuple[str, str, str]:
    from workbench.services.faults import Fault

    what, shown = f"{fault['kind']} {fault['name']}", Fault.model_validate(fault).description
    if not _agreed(shown, "Do it?", yes):
        return "left", what, f"{shown} To do it, agree, or give --yes."
    about = {"kind": fault["kind"], "name": fault["name"], "description": shown}
    try:
        return "mended", what, client.call("mend_fault", **about)["done"]
    except WorkbenchError as error:
        return "left", what, error.message


def _agreed(shown: str, question: str, yes: bool) -> bool:
    """Show a change, and ask for it unless everything is agreed to."""
    if yes:
        click.echo(inert(f"{shown} {question} Yes."), err=True)
    return yes or agreed(f"{shown} {question}")


def _restored(settings: Settings, says: str, yes: bool) -> tuple[str, str, str]:
    """Put the newest backup in the place of a store that is damaged."""
    from workbench.store.backups import newest_backup, replace

    if (backup := newest_backup(settings.database)) is None:
        return "left", "store", says
    if not _agreed(says, f"Put {backup} in its place?", yes):
        return "left", "store", says
    try:
        aside = replace(settings.database, backup, wall_clock())
    except WorkbenchError as error:
        return "left", "store", error.message
    return "mended", "store", f"{backup} is the store now. What was there before is in {aside}."


def _faults(client: OperatorClient) -> Sequence[Mapping[str, str]]:
    faults: Sequence[Mapping[str, str]] = client.call("find_faults")["faults"]
    return faults


def _consistency(client: OperatorClient) -> tuple[str, str, str]:
    """Whether rows, leases, worktrees and references fit each other."""
    try:
        if not state_directory.has_store(client.settings):
            return "-", "consistency", "nothing to look at yet"
        faults = _faults(client)
    except WorkbenchError as error:
        return "-", "consistency", f"not looked at: {error.code}"
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        return "warning", "consistency", f"{faults[0]['says']}{more}: `workbench doctor --fix` mends it"
    return "ok", "consistency", "rows, leases, worktrees and references fit each other"


def _keys(client: OperatorClient) -> Iterator[tuple[str, str, str]]:
    """The providers of models that answer, each tried with one request; only while a server runs: it has the keys."""
    try:
        if client.find_server() is None:
            return
        listed = client.call("check_model_keys", seconds=KEY_SECONDS)["keys"]
    except WorkbenchError as error:
        yield "warning", "keys", error.message
        return
    for key in listed:
        mark = {"none": "-", "accepted": "ok"}.get(key["state"], "warning")
        source = f" ({key['source']})" if key["source"] else ""
        yield mark, f"{key['provider']} key", f"{key['detail']}{source}"


def _optional(is_there: bool, what: str, text: str, otherwise: str) -> tuple[str, str, str]:
    return ("ok" if is_there else "-"), what, text if is_there else otherwise


def _chat() -> tuple[str, str, str]:
    """Whether models can be asked, and which providers' packages are missing."""
    if find_spec("pydantic_ai") is None:
        return "-", "chat", f"not installed: `pip install '{EXTRA}'`"
    missing = [name for name, package in PROVIDERS.items() if not _is_installed(package)]
    text = "models of all providers can be asked"
    return "ok", "chat", f"no packages for {', '.join(missing)}: `pip install '{EXTRA}'`" if missing else text


def _is_installed(package: str) -> bool:
    """Whether a package is there; a package within another that is missing is not."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _git(client: OperatorClient) -> tuple[str, str, str]:
    from workbench.git import Repository
    from workbench.git.run import run

    try:
        repository = Repository.open(client.settings.project)
        version = run(["version"], repository.root, {}, GIT_SECONDS).text
    except WorkbenchError as error:
        # A project needs no repository, but it needs git.
        return ("missing" if error.code.startswith("GIT_") else "warning"), "git", error.message
    return "ok", "git", f"{version.removeprefix('git version ')}, repository {repository.root}"


def _confinement(client: OperatorClient) -> tuple[str, str, str]:
    from workbench.services.processes.sandbox import confinement_support

    support = confinement_support(client.settings)
    if support.mode == "off" or support.missing:
        return ("missing" if support.mode == "required" else "warning"), "confinement", support.summary
    return "warning" if support.unused else "ok", "confinement", " ".join([support.summary, *support.unused])


def _state(client: OperatorClient) -> tuple[str, str, str]:
    try:
        state_directory.check(client.settings.project)
    except WorkbenchError as error:
        return "warning", "state", error.message
    there = client.settings.home.exists()
    return "ok", "state", str(client.settings.home) if there else "none yet; `workbench init` creates it"


def _store(client: OperatorClient) -> tuple[str, str, str]:
    """Whether the store is whole; SQLite looks at all of it, and PostgreSQL is asked."""
    from workbench.store.backups import newest_backup
    from workbench.store.examination import require_whole

    store = client.settings.database
    try:
        state_directory.check(client.settings.project)
    except WorkbenchError:
        return "-", "store", "not looked at, because the state of the project is not used"
    try:
        if client.settings.database_url is not None or DatabaseNote.of(client.settings.home) is not None:
            return _database(client.settings)
        if not state_directory.has_store(client.settings):
            return "-", "store", "none yet"
        require_whole(store)
    except WorkbenchError as error:
        return "damaged", "store", error.message
    backup = newest_backup(store)
    text = f"whole, {store.stat().st_size / MEGABYTE:.1f} MB; "
    return "ok", "store", text + (f"newest backup: {backup}" if backup else "no backup: `workbench backup` makes one")


def _database(settings: Settings) -> tuple[str, str, str]:
    """Whether the database that has the store answers."""
    from workbench.store.server_connection import database_status
    from workbench.trust.project_store import not_set

    if settings.database_url is None:
        note = DatabaseNote.of(settings.home)
        return "missing", "store", not_set(settings, note).message if note else ""
    try:
        status = database_status(settings.database_url.conninfo)
    except WorkbenchError as error:
        return "missing", "store", f"{settings.database_url}: {error.message}"
    connections = f"{status.all} of {status.most} connections"
    text = f"PostgreSQL {status.version} at {settings.database_url}, {size(status.bytes)}, {connections}"
    return "ok" if status.latest else "-", "store", text if status.latest else f"{text}; none yet"


def _trust(client: OperatorClient) -> tuple[str, str, str]:
    text = notice(client.settings.project)
    return ("warning", "trust", text) if text else ("ok", "trust", "all settings and profiles of the project are used")


def _server(client: OperatorClient) -> tuple[str, str, str]:
    try:
        info = client.find_server()
    except WorkbenchError:
        return "-", "server", "not looked for, because the state of the project is not used"
    if info is None:
        return "-", "server", "not running; start it with `%workbench start` in a notebook or `workbench serve`"
    return "ok", "server", f"{info.url}, process {info.pid}"


def _notifications(client: OperatorClient) -> Iterator[tuple[str, str, str]]:
    """Whether the newest message got to the person's own command and webhook, if she has one."""
    if not (client.settings.notify_command or client.settings.notify_webhook):
        return
    try:
        if not state_directory.has_store(client.settings):
            return
        newest = client.call("list_notifications", limit=1)["notifications"]
    except WorkbenchError as error:
        yield "warning", "notifications", error.message
        return
    for told in newest:
        says = f"message {told['id']} of {told['at']}: {told['error_code']}: {told['error']}"
        yield (
            ("warning", "notifications", says) if told["error"] else ("ok", "notifications", "delivered or on its way")
        )


def _disk(client: OperatorClient) -> tuple[str, str, str]:
    free = shutil.disk_usage(client.settings.project).free
    text = f"{free / GIGABYTE:.1f} GB free"
    if client.settings.max_disk_bytes:
        from workbench.services.worktrees import disk

        usage = disk.measure(client.settings)
        text += f"; the project takes {size(usage.bytes)} of {size(usage.limit)}"
        if usage.is_near_limit:
            return "warning", "disk", f"{text}: `workbench disk` shows what"
    return ("ok" if free > SCARCE else "warning"), "disk", text
