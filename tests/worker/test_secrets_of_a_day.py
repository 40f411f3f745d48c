"""A day of agents that write what is secret in every form: it is in no record, and keys are in no box.

The programs are scripts, see `leaking.py`, and Claude Code, Codex and Gemini CLI, where they are installed.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
import yaml

from tests import given
from tests.chance import SOAK, chance
from tests.conftest import Served, admitted, git
from tests.services.processes.running import serving, spawn
from tests.services.test_every_way_of_secrets import Lab, answers, frames, tables
from tests.services.tools.conftest import Shelf
from tests.worker.fake_model import answering
from tests.worker.test_real_programs import CODEX_FILE, _installed_programs
from workbench.definition_files import model_keys
from workbench.rules.models.upstream import PROVIDERS
from workbench.rules.secrets.forms import MASK
from workbench.state.settings import Settings, shipped
from workbench.trust.withheld import trust, withheld

__all__ = ["_installed_programs"]
pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(400)]

SCRIPT = Path(__file__).with_name("leaking.py")
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-0Zx8Cv7Bn6Ma5Sd4Fg3Hj2Kl1Qw9Er-PoIuYtReWq_LkJhGfDsAmNbVcXz-xAA",
    "OPENAI_API_KEY": "sk-proj-T4u5V6w7X8y9Z0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9",
    "GEMINI_API_KEY": "AIzaSyQ1w2E3r4T5y6U7i8O9p0A1s2D3f4G5h6J",
}
GIVEN = {
    "PLAIN": "q8+Wd/5Jx=Lp2~Vt7.Rb4_Hn-1Ks9Zc3Gm6",
    "DB_PASSWORD": "correct horse & battery/staple+7 ünique",
    "THEIR_TOKEN": "Yb3Nf8Qe1Xu6Tj0Ra5Mh2Pd9Wk4Vs7Lo",
    "DATABASE": "postgres://ada:Gt5Hy7Ju9Kl2Zx4C@db.example.org:5432/lab",
    "login.json": "4fGh7Jk0Lm3Np6Qr9St2Uv5Wx8Yz1Ab4Cd7",
    "tool server": "Zq7Wm3Kp9Xn5Bv1Cs8Df2Gh6Jl4Tr0Ey",
    ".env": "Kd9Fj2Ls5Gh8Aq1Wp4Zm7Xn0Cv3Bt6Ry",
}
NAMES = ["claude", "codex", "gemini"]
WIDE, STEP = 20, 8
"""The parts of a secret that are looked for have so many characters, and begin at each such step."""


def decoded(data: bytes) -> bytes:
    """Bytes without three levels of escapes."""
    for _ in range(3):
        data = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), data)
        data = re.sub(rb"\\+x([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), data)
        data = re.sub(rb"\\+u([0-9A-Fa-f]{4})", lambda found: chr(int(found[1], 16)).encode("utf-8", "replace"), data)
    return data


def traces(secret: str) -> set[bytes]:
    """A secret, and parts of it and of what it becomes in base64 and hexadecimal digits."""
    raw, words = secret.encode(), list[bytes]()
    for before in range(3):
        words.append(b64encode(b"\0" * before + raw)[before + bool(before) : -4])
    words += [raw.hex().encode(), raw.hex().upper().encode()]
    if "://" not in secret and " " not in secret:
        words.append(raw)
    parts = {word[start : start + WIDE] for word in words for start in range(0, len(word) - WIDE + 1, STEP)}
    return {raw} | parts | {part.translate(URL_SAFE) for part in parts}


URL_SAFE = bytes.maketrans(b"+/", b"-_")
TRACES = {name: traces(secret) for name, secret in (KEYS | GIVEN).items()}


def leaks(place: str, data: bytes) -> list[tuple[str, str]]:
    """The secrets in some data, and where that was."""
    forms = {data, decoded(data)}
    return [(name, place) for name, parts in TRACES.items() if any(part in form for part in parts for form in forms)]


def leaks_of_files(root: Path, *but: str) -> list[tuple[str, str]]:
    """The secrets in files, and in their names."""
    found: list[tuple[str, str]] = []
    for file in root.rglob("*"):
        place = str(file.relative_to(root))
        if place.startswith(but):
            continue
        found += leaks(place, place.encode())
        if file.is_file():
            found += leaks(place, file.read_bytes())
        if file.suffix == ".db":
            with sqlite3.connect(file) as store:
                for line in store.iterdump():
                    found += leaks(f"{place}: {line.split('VALUES')[0][:60]}", line.encode("utf-8", "replace"))
    return found


OF_THE_BOX = ("worktrees", "repositories", "environments", "profiles", "agents", "export")
"""What is a box, or is given to one: variables are kept for it in files that only the person can read."""


@pytest.fixture
async def day(settings: Settings, on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project whose person has keys in three places, a login, a file for worktrees, and a profile of her own."""
    home = on_disk / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("WORKBENCH_CONFIG", str(on_disk / "config"))
    shutil.rmtree(settings.home)  # it is of another home
    (home / "login.json").write_text(json.dumps({"claudeAiOauth": {"accessToken": GIVEN["login.json"]}}))
    for name, value in (*KEYS.items(), ("THEIR_TOKEN", GIVEN["THEIR_TOKEN"]), ("SERVER_KEY", GIVEN["tool server"])):
        monkeypatch.setenv(name, value)
    project = settings.project
    (project / ".env").write_text(f"# of the laboratory\nCOOKIE_JAR={GIVEN['.env']}\n")
    (project / ".gitignore").write_text(".env\n.aiswarm\n")
    shutil.copy(SCRIPT, project / "leaking.py")
    git("add", "-A", cwd=project)
    git("commit", "-qm", "Work", cwd=project)
    profile = {
        "summary": "Writes secrets.",
        "program": "claude",
        "driver": "text",
        "command": ["/bin/sh", "-c", "{python} leaking.py $(cat | grep -o 'do:[a-z]*' | head -n 1 | cut -c 4-)"],
        "stdin": "prompt",
        "prompt": "{description}",
        "token": True,
        "copies": ["login.json"],
        "passes": ["THEIR_TOKEN", *KEYS],
        "environment": {"WORKBENCH_TOKEN": "{token}"},
        "connect": ["server"],
        "read": ["/proc"],
    }
    (settings.home / "profiles").mkdir(parents=True, exist_ok=True)
    (settings.home / "profiles" / "leaks.yaml").write_text(yaml.safe_dump(profile), "utf-8")
    trust(project, withheld(project))
    return settings.model_copy(update={"include": (".env",)})


async def leaking(served: Served, name: str) -> dict[str, Any]:
    """An agent that writes secrets, with all that can be given to one."""
    await given.worktree(served.workbench, name)
    environment = {
        "NAMES": " ".join([*KEYS, *GIVEN]),
        "SOUGHT": " ".join(key[::-1] for key in KEYS.values()),
        **{variable: GIVEN[variable] for variable in ("PLAIN", "DB_PASSWORD", "DATABASE")},
    }
    more = {"environment": environment, "secret": ["PLAIN"], "definition": "critic"}
    return await spawn(served, name=name, assigned_worktree=name, profile="leaks", **more)


async def did(served: Served, what: str, agent: str) -> dict[str, Any]:
    """A task that was done."""
    new = {"description": f"do:{what}", "target_worktree": agent, "max_retries": 0}
    return await given.reached(served.workbench, await given.task(served.workbench, **new), "completed", "failed")


async def searched(lab: Lab, exported: Path) -> list[tuple[str, str]]:
    """The secrets in all that is shown, sent, exported and kept, and where. What runs in the box is not searched."""
    found = []
    async for place, what in answers(lab):
        if place == "get_worktree_status":  # what an agent commits is its work, which a person reviews as it is
            continue
        found += leaks(place, json.dumps(what, ensure_ascii=False, default=str).encode())
    for ways in (frames(lab), tables(lab, exported)):
        async for place, what in ways:
            found += leaks(place, str(what).encode("utf-8", "replace"))
    found += await asyncio.to_thread(leaks_of_files, lab.settings.home, *OF_THE_BOX)
    return sorted(set(found)) + leaks_of_files(exported)


def of_supervisors() -> set[str]:
    """The secrets in the variables and arguments of the processes that claim tasks."""
    found = [
        leaks("", json.dumps([process.environ(), process.cmdline()]).encode())
        for process in psutil.Process().children(recursive=True)
        if "workbench.worker" in process.cmdline()
    ]
    assert found
    return {name for one in found for name, _ in one}


async def test_no_record_of_a_day_has_a_secret_and_no_box_a_key(day: Settings, tmp_path: Path) -> None:
    async with serving(day) as served:
        workbench = served.workbench
        model_keys.keep_reference(PROVIDERS["openai"], "env://OPENAI_API_KEY")
        model_keys.keep(PROVIDERS["gemini"], KEYS["GEMINI_API_KEY"])
        await given.project(workbench)
        session = (await given.session(workbench, "s"))["id"]
        await workbench.call("agent_create", agentPath="./agents/critic", name="critic")
        server = {"url": "https://tools.example.org/mcp", "headers": {"X-Pass": "env://SERVER_KEY"}}
        server |= {"serverToolDefaults": {"permissionRequired": False}}
        await workbench.call("agent_add_mcp_server", agentTarget="critic", serverName="hub", config=server)
        for agent in ("ada", "bob"):
            await leaking(served, agent)
        await workbench.call("assign_agents", agent_ids=["ada", "bob"], changes={"session_id": session})
        shown, failed, crashed = [await did(served, what, "ada") for what in ("show", "fail", "crash")]
        supervisors = of_supervisors()
        people = [await admitted(workbench, name) for name in ("eve", "paula")]
        lab = Lab(served, *people, Shelf(), day, {"agent_id": ["ada", "bob"]})
        found = await searched(lab, tmp_path / "export")
        of_the_other = [leak for leak in leaks_of_files(day.worktrees / "bob") if leak[1] != ".env"]
    assert shown["status"] == "completed", shown
    made = shown["result_data"]
    assert (made["keys"], made["core"], made["secrets"], made["seen"] > 0) == ([], [0, 0], len(GIVEN) + 3, True)
    assert failed["error_message"].startswith("The command ended with status 1: ")
    assert MASK in failed["error_message"]
    assert "Segmentation fault" in crashed["error_message"]
    assert MASK in crashed["error_message"]
    assert [*(day.worktrees / "ada").glob("core*")] == []
    assert supervisors.isdisjoint(KEYS)
    assert (found, of_the_other) == ([], [])


@pytest.mark.node
@pytest.mark.usefixtures("_installed_programs")
@pytest.mark.parametrize("name", NAMES if SOAK else ["one of them"])
async def test_a_program_works_with_a_key_that_it_does_not_have(day: Settings, tmp_path: Path, name: str) -> None:
    """Its tool writes secrets, its model says them, as text and as arguments, and the provider tells its own key."""
    name = name if name in NAMES else chance().choice(NAMES)
    provider = {"claude": "anthropic", "codex": "openai", "gemini": "gemini"}[name]
    key, said = KEYS[PROVIDERS[provider].keys[0].name], f"{GIVEN['PLAIN']} is {GIVEN['PLAIN'].encode().hex()}"
    tell = ("mcp", ("write", {"content": {"title": "t", "content": said, "metadata": {"in": quote(said)}}}))
    with answering(("shell", "python3 leaking.py tell"), tell, ("text", f"Done: {said}")) as model:
        base = model.url + ("/v1" if provider == "openai" else "")
        model_keys.keep_reference(PROVIDERS[provider], f"env://{PROVIDERS[provider].keys[0].name}", base)
        if name == "codex":  # the model that it chooses itself has no tool for a command line
            codex = yaml.safe_load(shipped("data", "profiles", "codex.yaml").read_text("utf-8"))
            codex["files"][CODEX_FILE] = f'model = "fake"\n{codex["files"][CODEX_FILE]}'
            (day.home / "profiles" / "codex.yaml").write_text(yaml.safe_dump(codex), "utf-8")
            trust(day.project, withheld(day.project))
        async with serving(day) as served:
            workbench = served.workbench
            await given.project(workbench)
            await given.worktree(workbench, "ada")
            environment = {"NAMES": "PLAIN", "SOUGHT": key[::-1], "PLAIN": GIVEN["PLAIN"]} | {
                "GEMINI_MODEL": "gemini-2.5-pro"
            }
            how = {"profile": name, "environment": environment, "secret": ["PLAIN"], "assigned_worktree": "ada"}
            agent = await spawn(served, name="ada", **how)
            session = (await given.session(workbench, "s"))["id"]
            await workbench.call("assign_agents", agent_ids=["ada"], changes={"session_id": session})
            task_id = await given.task(workbench, target_worktree="ada", max_retries=0)
            task = await given.reached(workbench, task_id, "completed", "failed")

            async def transcript() -> str | None:
                """Once the last answer is in it: a program that has read it may end its task earlier."""
                messages = (await workbench.call("get_transcript", task_id=task_id))["messages"]
                text = json.dumps(messages, ensure_ascii=False)
                return text if '"Done: ' in text or task["status"] == "failed" else None

            heard = await given.until(transcript)
            supervisors = of_supervisors()
            people = [await admitted(workbench, one) for one in ("eve", "paula")]
            found = await searched(Lab(served, *people, Shelf(), day, {"agent_id": ["ada"]}), tmp_path / "export")
    assert task["status"] == "completed", (task, Path(agent["log"]).read_text())
    assert model.keys == {key}
    assert PROVIDERS[provider].keys[0].name not in supervisors
    assert "keys" in task["result_data"], task["result_data"]
    assert (task["result_data"]["keys"], task["result_data"]["core"]) == ([], [0, 0])
    assert f"Done: {MASK} is {MASK}" in heard
    assert found == []
