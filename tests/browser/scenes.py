"""Work to look at: real agents, tasks in every state, worktrees that ask to be merged."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from kernel_ext.hosting.host import KernelHost
from tests.browser.desk_lab import Project
from workbench.trust.withheld import trust, withheld

TABS = (
    *("Inbox", "Tasks", "Worktrees", "Agents", "Definitions"),
    *("Tools", "Chat", "Runs", "Analytics", "Personalities", "Projects", "Admin"),
)
PLAN = """\
plan: penguins
tasks:
- {name: clean, title: Clean the raw measurements, persona: implementer, worktree: clean}
- {name: mass, title: Model body mass, persona: implementer, worktree: mass, after: [clean]}
- {name: bills, title: Compare bill shapes of the three species, persona: implementer}
- {name: islands, title: "Map the islands, with the years side by side", persona: implementer}
- {name: review, title: Review the models, persona: reviewer, after: [mass, bills]}
- {name: report, title: Write the report, persona: implementer, after: [review]}
"""


def git(*arguments: str, cwd: Path) -> str:
    """Run git as a person would; what it says."""
    identity = ("-c", "user.name=Rosa", "-c", "user.email=rosa@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(path: Path) -> None:
    """Make a directory a repository with one commit."""
    git("init", "-q", "-b", "main", cwd=path)
    (path / "model.py").write_text("".join(f"line_{n} = {n}\n" for n in range(30)))
    git("add", "model.py", cwd=path)
    git("commit", "-q", "-m", "Begin", cwd=path)


def admitted(project: Project, name: str, persona: str = "implementer", **choices: Any) -> str:
    """An admitted agent; its token."""
    registered = project.call("register", name=name, persona_id=persona)
    project.operate("approve", approval_id=registered["approval_id"], choices=choices)
    token: str = registered["token"]
    return token


def proposal(project: Project, name: str, *, clash: bool = False) -> dict[str, Any]:
    """A worktree with a commit that asks to be merged."""
    worktree = Path(project.operate("create_worktree", name=name)["path"])
    (worktree / "stats.py").write_text("mean = 1\nmedian = 2\n")
    (worktree / "model.py").write_text((worktree / "model.py").read_text().replace("line_3 = 3", "line_3 = 33"))
    git("add", ".", cwd=worktree)
    git("commit", "-q", "-m", "Add robust statistics", cwd=worktree)
    if clash:
        (project.path / "model.py").write_text("line_3 = 'other'\n")
        git("commit", "-q", "-a", "-m", "Change the same line", cwd=project.path)
    return project.operate("integrate_worktree", worktree_name=name)


def worktree(project: Project, name: str, *commits: dict[str, str], left: dict[str, str] | None = None) -> Path:
    """A worktree with commits of these files, and files that are not committed."""
    path = Path(project.operate("create_worktree", name=name)["path"])
    for number, files in enumerate(commits, 1):
        _write(path, files)
        git("add", ".", cwd=path)
        git("commit", "-q", "-m", f"Step {number} of {name}", cwd=path)
    _write(path, left or {})
    return path


def _write(path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)


def changed(line: int, value: int) -> str:
    """The text of `model.py` with another value in one line."""
    return "".join(f"line_{n} = {value if n == line else n}\n" for n in range(30))


def busy(project: Project) -> None:
    """A plan half done by two agents, with a failed and a cancelled task; three agents wait."""
    made = project.operate("create_plan", text=PLAN)["tasks"]
    steps = [
        project.operate("create_task", title=title, persona_id="implementer", parent_task_id=made["clean"])["id"]
        for title in ("Drop rows without sex", "Convert units", "Write the table")
    ]
    doomed = project.operate("create_task", title="Fetch weather data", persona_id="tester", max_retries=0)
    needless = project.operate("create_task", title="Port to another language", persona_id="tester")
    project.operate("cancel_task", task_id=needless["id"])
    _work(project, made, steps, doomed["id"])
    project.call(
        "register", name="Hugo", persona_id="reviewer", capabilities={"languages": ["python", "r"], "gpu": False}
    )
    project.call("register", name="night-planner", persona_id="planner")
    project.call("register", name="visitor")


def _work(project: Project, made: dict[str, int], steps: list[int], doomed: int) -> None:
    ada, tess, grace = (admitted(project, *who) for who in (("ada",), ("tess", "tester"), ("grace",)))
    for task in steps[:2]:
        project.call("claim_task", ada, task_id=task)
        project.call("complete_task", ada, task_id=task)
    project.call("claim_task", ada, task_id=made["bills"])
    project.call("report_task_progress", ada, task_id=made["bills"], percent_complete=60)
    project.call("claim_task", grace, task_id=made["islands"])
    project.call("claim_task", tess, task_id=doomed)
    project.call("fail_task", tess, task_id=doomed, error_message="The station is gone.", retryable=False)


def defined(project: Project) -> None:
    """Two definitions, one of them with everything, and one that cannot be read."""
    reviewer = {"agentTarget": "./agents/careful-reviewer"}
    project.operate(
        "agent_create", agentPath=reviewer["agentTarget"], name="Careful reviewer",
        description="Reads every change before it is merged, and says what to mend.",
        initialPrompt="You review the changes of a laboratory.\nSay what you have read, and what you have not.",
    )  # fmt: skip
    project.operate("agent_create", agentPath="./agents/librarian", name="Librarian", mode="tools")
    for rule in (
        {"name": "be-polite", "text": "Always use polite language.", "include": "always", "priorityLevel": 1},
        {"name": "small-changes", "text": "Ask for changes that do one thing each.", "include": "agent"},
    ):
        project.operate("agent_add_rule", **reviewer, rule=rule)
    docs = {"name": "api-docs", "description": "The interfaces of the laboratory", "text": "GET /penguins lists them."}
    project.operate("agent_add_reference", **reviewer, reference=docs)
    keys = {"OPENAI_API_KEY": "sk-written-out"}
    project.operate("agent_install_provider", **reviewer, providerType="openai", config=keys)
    directory = project.path / ".aiswarm" / "agents"
    with (directory / "careful-reviewer" / "agent.yaml").open("a") as file:
        file.write("mcpServers:\n  github: {command: npx, args: [-y, mcp-github], env: {TOKEN: 'env://TOKEN'}}\n")
    project.operate("agent_request_trust", **reviewer)
    (directory / "broken").mkdir()
    (directory / "broken" / "agent.yaml").write_text("metadata: [1\n")


def measured(project: Project) -> None:
    """Runs in every state with parameters, series, notes, tags and a table; one has failed, one goes on."""
    for number, (name, state) in enumerate((("baseline", "completed"), ("wide", "completed"), ("deep", "failed"))):
        losses = [round(1 / (1 + step * (number + 1) / 10), 4) for step in range(40)]
        made = project.operate("start_run", name=name, parameters={"lr": 0.1 / (number + 1), "layers": 2 + number})
        project.operate("record_metrics", run_id=made["id"], metrics={"loss": losses, "accuracy": [0.8 + number / 20]})
        error = (
            {"error_code": "CELL_FAILED", "error": "ValueError: no column sex\nin cell 3"} if state == "failed" else {}
        )
        project.operate("end_run", run_id=made["id"], state=state, **error)
    (project.path / "masses.csv").write_text("species,mass\nAdelie,3701\nGentoo,5076\n")
    project.operate("add_run_artifact", run_id=1, path="masses.csv")
    said = {"notes": "The simplest that could work.", "add_tags": ["good", "paper"]}
    project.operate("update_run", run_id=1, **said)
    going = project.operate("start_run", name="longer training of all species", parameters={"lr": 0.05, "layers": 8})
    project.operate("record_metrics", run_id=going["id"], metrics={"loss": [1.0, 0.7, 0.6]})


def reviewed(project: Project) -> None:
    """A worktree whose changes were to be changed: two comments, and a commit since."""
    place = worktree(project, "medians", {"stats.py": _STATISTICS})
    project.operate("integrate_worktree", worktree_name="medians")
    comments = [
        {"path": "stats.py", "line": 6, "text": "Sort the values first."},
        {"path": "stats.py", "line": 1, "text": "Which mean?"},
    ]
    project.operate("request_changes", worktree_name="medians", comments=comments, note="Nearly there.")
    _write(place, {"stats.py": _STATISTICS.replace("values[0]", "sorted(values)[0]")})
    git("commit", "-q", "-a", "-m", "Sort first", cwd=place)


_STATISTICS = """\
def mean(values):
    return sum(values) / len(values)


def median(values):
    return values[0]
"""

SCRIPT = """\
metadata: {id: planner, name: Planner}
settings:
  model: test:script
  script:
  - say: |
      I look **who** can work here:

      1. agents
      2. `personas`

      | species | count |
      |---------|------:|
      | Adelie  | [152](http://127.0.0.1) |
    calls: [{tool: get_personas}]
  - say: Now I plan it.
    calls: [{tool: create_task, input: {title: Count the penguins, persona_id: tester}}]
"""


def talked(project: Project) -> None:
    """A conversation whose model waits for permission, a call of a tool, and a server that is down."""
    task = {"title": "Count the penguins", "persona_id": "tester"}
    project.operate("call_tool", name="create_task", arguments=task)
    (directory := project.path / ".aiswarm" / "agents" / "planner").mkdir(parents=True)
    (directory / "agent.yaml").write_text(SCRIPT)
    conversation = project.operate(
        "create_conversation", definition="./agents/planner", title="Plan the count", tools=["*", "workbench"]
    )
    project.operate("ask", conversation_id=conversation["id"], content="Who can count?\nPlan it.")
    project.operate("add_tool_server", name="hub", config={"command": "false", "args": []})


def eventful(project: Project) -> dict[str, int]:
    """One task with everything: a failed attempt, a long log, dependencies, subtasks."""
    ada = admitted(project, "ada")
    first = project.operate("create_task", title="Fetch the stations", persona_id="implementer")["id"]
    text = "Model body mass by species and sex.\n\nLeave out rows without sex, and say how many there were."
    made = project.operate(
        "create_task", title="Model body mass", persona_id="implementer", description=text, dependencies=[first],
        max_retries=3, metadata={"paper": "Gorman 2014"}, run="python model.py --robust",
    )["id"]  # fmt: skip
    after = project.operate("create_task", title="Write the report", persona_id="reviewer", dependencies=[made])["id"]
    for title in ("Choose the predictors", "Cross-validate"):
        project.operate("create_task", title=title, persona_id="tester", parent_task_id=made)
    project.call("claim_task", ada, task_id=first)
    project.call("complete_task", ada, task_id=first)
    _attempts(project, ada, made)
    return {"first": first, "model": made, "after": after}


def _attempts(project: Project, token: str, task_id: int) -> None:
    project.call("claim_task", token, task_id=task_id)
    project.call("report_task_progress", token, task_id=task_id, progress_note="Reading 344 rows", percent_complete=10)
    project.call("fail_task", token, task_id=task_id, error_message="penguins.csv has no column sex", retryable=False)
    project.operate("retry_task", task_id=task_id, reason="The table is there now")
    project.call("claim_task", token, task_id=task_id)
    for number in range(130):
        note = f"Fold {number + 1} of 130: R² 0.8{number % 10}"
        project.call("report_task_progress", token, task_id=task_id, progress_note=note, percent_complete=20)


def laboratory(project: Project) -> dict[str, str]:
    """Two projects with sessions and teams, admitted agents of every kind, and a rule; ids by name."""
    made = {name: project.operate("create_project", name=name)["id"] for name in ("Penguins", "Weather")}
    for parent, name in (("Penguins", "Field season"), ("Penguins", "Analysis"), ("Weather", "Forecast")):
        made[name] = project.operate("create_session", project_id=made[parent], name=name)["id"]
    for name, session in (("Counting", "Field season"), ("Night shift", "Field season"), ("Writing", "Analysis")):
        made[name] = project.operate("create_team", name=name, session_id=made[session])["id"]
    for name, persona, choices in _STAFF:
        registered = project.call(
            "register", name=name, persona_id=persona, capabilities={"languages": ["python", "r"]}
        )
        wanted = {key: made.get(str(value), value) for key, value in choices.items()}
        project.operate("approve", approval_id=registered["approval_id"], choices=wanted)
    project.operate("revoke_agent", agent_id="old-crawler", reason="It asked for too much.")
    grants = {"tool": "read", "session_id": made["Analysis"], "expires_in_seconds": 28_800}
    project.operate("add_admission_rule", name="night shift", pattern="night-*", grants=grants)
    return made


_STAFF: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ada", "implementer", {"team_id": "Counting", "access_level": "team_level"}),
    ("Grace the reviewer", "reviewer", {"agent_id": "grace", "team_id": "Writing", "tool": "read"}),
    ("tess", "tester", {"session_id": "Field season", "expires_in_seconds": 86_400}),
    ("planner of the night", "planner", {"agent_id": "nox", "session_id": "Analysis", "access_level": "session_level"}),
    ("old-crawler", "implementer", {"session_id": None}),
)


def fill(project: Project) -> None:
    """Before it is served: gates that pass or fail."""
    (project.path / ".aiswarm" / "settings.toml").write_text(
        "integration_gates = ['echo all is well', 'test ! -e broken.py']\n"
    )
    trust(project.path, withheld(project.path))


def work(project: Project) -> None:
    """Something in every view but those of runs and personalities."""
    busy(project)
    worktree(project, "bills", {"model.py": changed(3, 33)}, left={"notes.md": "# Later\n"})
    worktree(project, "islands")
    worktree(project, "robust", {"src/stats.py": "mean = 1\nmedian = 2\n"}, {"model.py": changed(3, 44)})
    worktree(project, "broken", {"broken.py": "x = \n"})
    worktree(project, "old", {"old.py": "x = 1\n"})
    project.operate("discard_worktree", worktree_name="old", reason="Superseded", force=True)
    for name in ("robust", "broken"):
        project.operate("integrate_worktree", worktree_name=name)
    project.operate("spawn_agent", persona_id="tester", name="walt")
    defined(project)
    talked(project)
    lab = project.operate("create_project", name="Penguins")["id"]
    session = project.operate("create_session", project_id=lab, name="Field season")["id"]
    project.operate("create_team", name="Counting", session_id=session)
    project.operate("add_admission_rule", name="night shift", pattern="night-*", grants={"tool": "read"})


def networked(project: Project, coordinator: KernelHost) -> None:
    """The project takes part in a network, with a personality on each side."""
    assert coordinator.info is not None
    coordinator.call("publish_personality", name="penguin-counter", traits={"mood": "curious", "colonies": [3, 4]})
    project.operate("join_network", first_contact=f"{coordinator.info.url}/koi-net", name="lab")
    traits = {"description": "Reviews what others have counted", "patience": 3}
    project.operate("publish_personality", name="careful-ada", version="1.0", traits=traits)
    project.operate("publish_personality", name="careful-ada", version="1.1")
