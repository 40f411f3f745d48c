"""Claude Code, Codex and Gemini CLI reach a model by the name of its host, and nothing else.

npm ci --prefix tests/worker/programs
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.confinement.outside_hosts import resolve
from tests.confinement.scene import Scene
from tests.worker.fake_model import FakeModel, answering
from workbench.confinement.gate import Gate

pytestmark = [pytest.mark.node, pytest.mark.timeout(180)]

PROGRAMS = Path(__file__).parents[1] / "worker" / "programs" / "node_modules"
SAID = "THE-MODEL-WAS-REACHED"
CODEX = """
model = "fake"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "CODEX_API_KEY"
"""
COMMANDS = {
    "claude": ["claude", "--print", "--output-format=text"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "--color=never", "--dangerously-bypass-approvals-and-sandbox"],
    "gemini": ["gemini", "--approval-mode=yolo", "--output-format=text"],
}
GEMINI = '{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}}'


def variables(scene: Scene, url: str) -> dict[str, str]:
    """What leads all three to a model."""
    return {
        "PATH": f"{PROGRAMS / '.bin'}{os.pathsep}{scene.environment['PATH']}",
        "CODEX_HOME": str(scene.scratch / ".codex"),
        "ANTHROPIC_BASE_URL": url,
        "GOOGLE_GEMINI_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **dict.fromkeys(("ANTHROPIC_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY"), "sk-key"),
    }


def prepare(scene: Scene, url: str) -> None:
    """The files that Codex and Gemini CLI are configured with."""
    for name, text in {".codex/config.toml": CODEX.format(url=url), ".gemini/settings.json": GEMINI}.items():
        path = scene.scratch / name
        path.parent.mkdir(parents=True)
        path.write_text(text)


def ask(scene: Scene, model: FakeModel, name: str, host: str) -> tuple[str, list[str]]:
    """What a program says in a box that reaches good.example, where its model is at `host`; the refused hosts."""
    url = f"http://{host}:{model.port}"
    prepare(scene, url)
    box = replace(
        scene.box,
        read=(*scene.box.read, PROGRAMS, Path("/proc/self")),
        hosts=(f"good.example:{model.port}",),
        private=(f"good.example:{model.port}",),
    )
    with Gate.beside(box, resolve) as gate:
        done = subprocess.run(
            box.argv(COMMANDS[name], way_out=gate.way_out, guarded=True),
            cwd=scene.worktree,
            env={**scene.environment, **variables(scene, url), **gate.environment},
            input="Say it.",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
            pass_fds=gate.pass_fds,
        )
    return done.stdout, [refusal.host for refusal in gate.refused]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_reaches_its_model_by_the_name_of_its_host(scene: Scene, name: str) -> None:
    if scene.user is not None or shutil.which(name, path=str(PROGRAMS / ".bin")) is None:
        pytest.skip(f"{name} is not installed for who works here")
    with answering(("text", SAID)) as model:
        said, refused = ask(scene, model, name, "good.example")
    assert SAID in said
    assert "good.example" not in refused
