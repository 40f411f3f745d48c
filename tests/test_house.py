"""A stranger finds everything by its noun: the house's rooms, its words and its size."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from docs.generator.op_codes import parsed
from workbench.ops import collect
from workbench.services import SERVICES

ROOT = Path(__file__).parents[1]
SERVICES_PATH = "workbench/services"
PANEL = "kernel_ext/panels/src"
LONGEST_FILE = 600
SHORTEST_FILE = 30
LARGEST_FILE = 500_000

QUESTIONS = {
    "the heartbeat": (f"{SERVICES_PATH}/tasks/heartbeat.py", "async def heartbeat_and_get_tasks"),
    "claiming a task": (f"{SERVICES_PATH}/tasks/claims.py", "async def claim_task"),
    "completing a task": (f"{SERVICES_PATH}/tasks/progress.py", "async def complete_task"),
    "what a state of a task may become": ("workbench/rules/tasks/lifecycle.py", "TRANSITIONS"),
    "a plan as Markdown": ("workbench/rules/tasks/plan/markdown.py", "def "),
    "revoking an agent": (f"{SERVICES_PATH}/processes/departures.py", "async def revoke_agent"),
    "registering": (f"{SERVICES_PATH}/agents/register.py", "async def register"),
    "admission rules": (f"{SERVICES_PATH}/agents/admission.py", "async def add_admission_rule"),
    "list_events": (f"{SERVICES_PATH}/sharing/events.py", "async def list_events"),
    "sessions of a project": (f"{SERVICES_PATH}/spaces/sessions.py", "async def create_session"),
    "read and write of spec 1": (f"{SERVICES_PATH}/insight/read_write.py", "async def read"),
    "the gates of an integration": (f"{SERVICES_PATH}/integration/gates.py", "async def run"),
    "coming conflicts": (f"{SERVICES_PATH}/worktrees/conflicts.py", "async def list_conflicts"),
    "clearing up worktrees": (f"{SERVICES_PATH}/worktrees/cleanup.py", "async def prune_worktrees"),
    "starting an agent's process": (f"{SERVICES_PATH}/spawning/launch.py", "async def launch"),
    "recording a metric": (f"{SERVICES_PATH}/runs/recording.py", "async def record_metrics"),
    "the spec's prompt": ("workbench/rules/wire/message.py", "tool_selection_prompt"),
    "as whom a message comes": ("workbench/shells/websocket/binding.py", "class Binding"),
    "the one door": ("workbench/ops/dispatch.py", "async def dispatch"),
    "group commit": ("workbench/store/sqlite.py", "def _commit"),
    "the diff's colours": (f"{PANEL}/lib/highlight.js", "export function highlight"),
    "the inbox's card": (f"{PANEL}/inbox/card.js", "export class ApprovalCard"),
    "the integrate command": ("workbench/services/integration/request.py", "integrate NAME"),
}
"""What a stranger asks for, the file that the house's plan leads to, and what stands in it."""

INDEXED = {
    *("the back-off of a retry", "what an exit status of 75 means", "how a token is checked"),
    *("what happens when a lease ends", "the command `cancel`", "where a secret is masked"),
    *("the query behind `report waits`", "how the panel learns of a new task", "how a KOI event is believed"),
    "how a killed sweep goes on",
}
"""What a stranger asks the index of the architecture; `test_docs.py` checks that its answers are true."""
ALONE = re.compile(r"^Alone: \S.*\.$", re.MULTILINE)
"""The line of a short file's docstring that says why it is not in the file that it serves."""

WORDS = {
    "approvals": "approv|reject",
    "access": "persona|whoami|agent_tool|allowlist|allow_|untrusted",
    "holds": "hold",
    "notifications": "notification",
    "messages": "message|^tell$|^ask_person$|^comment_on_task$",
    "spaces": "project|session|team",
    "agents": "regist|ping|admission|^connection_|(get|list|update|assign|restore)_.*agent|token",
    "sharing": "context|event|_agent_history|export$|^import_|^vacuum_store$",
    "tasks": "task|dependency|heartbeat|plan|priority",
    "processes": "managed_agents|process|profile|confinement|^(terminate|revoke|deregister|delete)_agent$",
    "insight": "read|write|performance|hours|activity",
    "worktrees": "worktree|conflicts|disk",
    "integration": "integrat",
    "reviews": "request(ed)?_changes",
    "saved_views": "_views?$",
    "schedules": "schedule",
    "servers": "servers$|machine$",
    "models": "_model_keys$|transcript$",
    "spending": "usage$|costs$|budgets?$",
    "resources": "resources$",
    "telemetry": "telemetry$|^list_spans$",
    "undo": "^undo$",
    "faults": "faults?$",
    "runs": "(^|_)(run|sweep|metric)s?(_|$)",
    "spawning": "spawn|restart_agent|enlist|worker_terms|unattended|workplace|_machines?$",
    "attempts": "attempt|_artifact$",
    "conversations": "conversation|message|answer|frames|^ask$|turn|_models$|_model_requests$",
    "definitions": "^agent_|_(rule|reference)s?$",
    "personalities": "personalit|_(network|peers?|traits|peer_permission)$",
    "tools": "tool",
}
"""Of what the operations in each folder speak."""

FORMER = {
    *("glance", "glances", "peek", "steering", "upkeep", "asking", "steps", "callers", "instructions", "agent_tools"),
    *("taskline", "door", "pulse", "tally", "look", "files", "wish", "some", "managed", "issued", "powers"),
    *("limitsof", "tried", "kept", "meant", "part", "given", "listed", "heard_of", "fall_silent", "gone", "turn_away"),
    *("effect", "effects", "ground", "whole", "radar", "vault", "takeover", "take_over", "records"),
    *("orders", "family", "site", "notes", "anywhere", "shown", "pace"),
}
"""Names that once stood for something here that the field calls otherwise."""

DEFINED = re.compile(r"^ *(?:class|(?:async )?def) ([a-z]\w*)", re.MULTILINE | re.IGNORECASE)


def tracked(*places: str) -> list[Path]:
    """The files that belong to the project."""
    listed = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\n") if name and (ROOT / name).is_file()]


HOUSE = [
    path
    for path in tracked("workbench", "kernel_ext", "docs", "tests")
    if path.suffix in (".py", ".js", ".css", ".mjs") and "static" not in path.parts
]


def test_the_architecture_answers_the_questions_of_a_stranger() -> None:
    texts = {question: (ROOT / path).read_text("utf-8") for question, (path, _) in QUESTIONS.items()}
    assert [question for question, (_, marker) in QUESTIONS.items() if marker not in texts[question]] == []


def test_the_architectures_index_answers_a_strangers_questions() -> None:
    rows = (ROOT / "docs" / "architecture.md").read_text("utf-8").splitlines()
    asked = {row.split("|")[1].strip() for row in rows if row.startswith("| ")}
    assert INDEXED - asked == set()


def test_an_operation_lies_in_the_folder_of_its_noun() -> None:
    folders = {name: op.fn.__module__.split(".")[2] for name, op in collect(SERVICES).items()}
    assert {name: folder for name, folder in folders.items() if not re.search(WORDS[folder], name)} == {}


def test_every_folder_of_services_has_words() -> None:
    folders = {path.relative_to(ROOT / SERVICES_PATH).parts[0].removesuffix(".py") for path in tracked(SERVICES_PATH)}
    assert folders - {"__init__"} - {f"{name}.sql" for name in WORDS} == set(WORDS)


def test_no_file_is_too_long_to_read() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in HOUSE}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_a_short_file_says_why_it_stands_alone() -> None:
    modules = [path for path in tracked("workbench", "kernel_ext") if path.suffix == ".py"]
    declaring = ("__init__.py", "__main__.py")
    short = [
        path
        for path in modules
        if path.name not in declaring and len(path.read_text("utf-8").splitlines()) < SHORTEST_FILE
    ]
    without = [path for path in short if not ALONE.search(ast.get_docstring(parsed(path)) or "")]
    assert [str(path.relative_to(ROOT)) for path in without] == []


def test_nothing_large_that_was_downloaded_or_built_belongs_to_the_project() -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked()}
    assert {name: size for name, size in sizes.items() if size > LARGEST_FILE} == {}


def names(path: Path) -> Iterator[str]:
    """The module, and its classes and public functions and methods."""
    yield path.stem if path.stem != "__init__" else path.parent.name
    yield from DEFINED.findall(path.read_text("utf-8"))


def test_no_former_name_is_left() -> None:
    python = [path for path in tracked("workbench", "kernel_ext") if path.suffix == ".py"]
    found = [f"{path.relative_to(ROOT)}: {name}" for path in python for name in names(path) if name.lower() in FORMER]
    scripts = [path for path in tracked(PANEL) if path.suffix == ".js"]
    exported = re.compile(r"^export (?:default )?(?:async )?(?:class|function) (\w+)", re.MULTILINE)
    for path in scripts:
        mentioned = [path.stem, *exported.findall(path.read_text("utf-8"))]
        found += [f"{path.relative_to(ROOT)}: {name}" for name in mentioned if name.lower() in FORMER]
    assert found == []
