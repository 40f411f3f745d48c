"""The programs of agents are heard while they work, ended when nothing helps, and continued by the next attempt.

Scripts stand for the programs: they print what those print.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.drivers.days import CLAUDE, CODEX, INIT, RESULT, retry
from tests.worker.runner import BegunListener, Runner
from workbench.drivers.stream import ToolEnd, ToolStart
from workbench.rules.failures import FailureKind
from workbench.rules.profile import Profile
from workbench.rules.secrets.forms import MASK
from workbench.worker import attempt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

KEY = 'sk-"of the person"-4711'


def scripted(run: Runner, script: str, *lines: Any, driver: str = "claude") -> Runner:
    """A runner of a profile whose program is a shell script; `$out` is a file with some lines."""
    out = run.scratch.parent / "lines.jsonl"
    out.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    command = ["/bin/sh", "-c", f"out={out}; {script}", "claude"]
    prompt = "{description}\n{previous}\n"
    more = {"program": "claude"} if driver == "claude" else {"driver": driver}
    run.profile = Profile(name="p", summary="A script.", command=command, stdin="prompt", prompt=prompt, **more)
    return run


async def test_what_a_program_does_is_told_live_and_its_last_word_is_the_result_without_secrets(run: Runner) -> None:
    last = RESULT | {"result": f"All of it.\n{'x' * 50_000}\nThe key is {KEY}."}
    scripted(run, 'cat "$out"; echo trace >&2', *CLAUDE[:-1], f"not JSON, {KEY}", last)
    run.secret_variables = ("CODE",)
    outcome = await run(None, CODE=KEY)
    assert outcome.ok, outcome.error
    assert outcome.result["answer"].startswith("All of it.")
    assert outcome.result["answer"].endswith(f"The key is {MASK}.")
    assert KEY not in "\n".join(run.lines)
    assert "[Bash]" in run.lines
    assert {"I look.", "[wb: echo]", f"not JSON, {MASK}", "trace"} <= set(run.lines)
    assert [type(call) for call in run.calls] == [ToolStart, ToolStart, ToolEnd, ToolEnd]
    assert outcome.usage is not None
    assert (outcome.usage.input_tokens, outcome.usage.cost_usd) == (6, 0.03)


async def test_a_program_whose_key_is_refused_is_ended_although_it_ignores_sigterm(run: Runner) -> None:
    run.grace = 0.4
    scripted(run, 'trap "" TERM; cat "$out"; while :; do sleep 0.1; done', INIT, retry(401, "authentication_failed"))
    outcome = await run(None)
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.retryable, outcome.error_class) == (FailureKind.AUTH, False, "auth")


@pytest.mark.long
async def test_a_program_that_says_nothing_is_ended_but_not_while_its_tool_runs(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "Listener", BegunListener)
    run.silence = 0.5
    scripted(run, 'cat "$out"; exec tail -f /dev/null', INIT)
    outcome = await run(None)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SILENT
    ended = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": ""}]}}
    scripted(run, 'head -n 1 "$out"; sleep 1.2; tail -n 2 "$out"', CLAUDE[3], ended, RESULT)
    assert (await run(None)).ok
    lost = "head -c 12000000 /dev/zero; echo"  # the end of the call, with a long result
    outcome = await scripted(run, f'head -n 1 "$out"; {lost}; exec tail -f /dev/null', CLAUDE[3])(None)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SILENT


@pytest.mark.parametrize(
    "script", ["exit 0", 'cat "$out"', "head -c 12000000 /dev/zero | tr '\\0' '{'", "yes '[1]' | head -n 5000"]
)
async def test_a_program_that_does_not_say_how_it_ended_has_crashed(run: Runner, script: str) -> None:
    outcome = await scripted(run, script, INIT)(None)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.CRASHED
    assert run.lines.count("[a line too long to keep]") == ("zero" in script)


async def test_the_next_attempt_continues_the_conversation_and_is_told_what_was_left(run: Runner) -> None:
    run.sessions = run.scratch.parent / "sessions"
    write = "mkdir -p ~/.claude/projects/x; echo begun with sk-4711-4711 > ~/.claude/projects/x/6.jsonl"
    outcome = await scripted(run, f'{write}; cat "$out"; kill -9 $$', INIT)(None, API_TOKEN="sk-4711-4711")
    assert (outcome.failure and outcome.failure.kind) is FailureKind.CRASHED
    kept = {"ref": "refs/workbench/attempts/7/1", "commits": 2, "files": 3}
    past = {"attempt": 1, "agent_id": "bob", "ended_at": 1, "outcome": "failed", "error_class": "context"}
    run.attempts = [past | {"error_message": "It broke at line 4.", "kept": kept}]
    scripted(run, 'head -n 1 | sed "s|^|> |"; for one; do echo "$one"; done; cat "${5#--resume=}"; cat "$out"', RESULT)
    assert (await run(None, "Do it.")).ok
    told = "\n".join(run.lines)
    for part in ("Attempt 1, by bob, ended: failed (context).", "at line 4", "2 commits in 3 files", "go on where"):
        assert part in told
    assert f"begun with {MASK}" in run.lines
    assert "--output-format=stream-json" in run.lines
    run.lines.clear()
    assert (await run(None)).ok
    assert not any("--resume" in line for line in run.lines), "a conversation is taken once"


async def test_a_template_of_ones_own_names_whose_output_it_writes(run: Runner) -> None:
    outcome = await scripted(run, 'echo "$#"; cat "$out"', *CODEX, driver="codex")(None)
    assert (outcome.result, run.lines[0]) == ({"answer": "final\nanswer"}, "0")
    outcome = await scripted(run, 'cat "$out"', RESULT, driver="text")(None)
    assert (outcome.ok, outcome.failure, outcome.result) == (True, None, None)
