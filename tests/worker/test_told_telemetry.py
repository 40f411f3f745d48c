"""What Claude Code, Codex and Gemini CLI ask a scripted model is in the ledger once, measured by the gateway or told by
themselves.

npm ci --prefix tests/worker/programs
"""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests import given
from tests.services.processes.running import serving, spawn
from tests.worker.fake_model import answering
from tests.worker.test_real_programs import PROGRAMS, PROVIDERS, for_test
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.node, pytest.mark.timeout(180)]

KEY = "sk-of-the-person-0123456789abcdef"
VARIABLES = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}


@pytest.mark.parametrize("gateway", [False, True])
@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
async def test_what_a_real_program_asks_is_booked_once(
    settings: Settings, name: str, gateway: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    chosen = settings.model_copy(update={"agent_telemetry": True, "model_gateway": gateway})
    with answering(("shell", "echo told-by-a-shell"), ("text", "All is done.")) as model:
        address = for_test(chosen, name, model)
        for variable, value in address.items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setenv("OPENAI_API_KEY" if gateway and name == "codex" else VARIABLES[name], KEY)
        async with serving(chosen) as served:
            task_id = await given.task(served.workbench, "Do the thing", max_retries=0)
            await spawn(served, profile=name, environment={} if gateway else address)
            task = await given.reached(served.workbench, task_id, "completed", "failed")
            assert task["status"] == "completed", task["error_message"]
            costs = (await served.workbench.call("list_costs", by="attempt"))["costs"]
            transcript = json.dumps((await served.workbench.call("get_transcript", task_id=task_id))["messages"])
            await served.workbench.end_workers()
    asked = [
        path
        for path, said in model.requests
        if "told-by-a-shell" in json.dumps(said) or "Do the thing" in json.dumps(said)
    ]
    (cost,) = costs
    assert (cost["name"], cost["provider"]) == (f"{task_id}.1", PROVIDERS[name])
    assert cost["requests"] == len([path for path in asked if "count" not in path])
    assert (cost["input_tokens"], cost["output_tokens"]) == (cost["requests"], cost["requests"])
    assert "told-by-a-shell" in transcript
    assert KEY not in transcript
