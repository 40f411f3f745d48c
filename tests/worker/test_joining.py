"""Workers on a machine without the project: a real process in a directory of its own, which has only the address."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import stat
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from annotated_types import Ge

from tests import given
from tests.code_blocks import code_blocks, run_commands
from tests.conftest import Served, git, typed
from tests.shells.models.upstream import says, upstream
from tests.tls import tls_in_front
from tests.worker.faulty_proxy import FaultyProxy
from workbench.confinement import abilities
from workbench.confinement.abilities import of as no_landlock
from workbench.definition_files import model_keys
from workbench.errors import Unavailable
from workbench.rules.models.upstream import PROVIDERS
from workbench.services.processes import sandbox
from workbench.services.spawning import joining
from workbench.services.spawning.joining import JoinRequest, join
from workbench.state.settings import Settings
from workbench.system import file_pieces
from workbench.trust.withheld import trust, withheld
from workbench.worker import supervised
from workbench.worker.startup import WorkerConfig
from workbench.worker.supervisor import Supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long]


ROOT = Path(__file__).parents[2]


class Elsewhere:
    """A machine with a directory in which its workers have everything."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @asynccontextmanager
    async def worker(self, command: str, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A worker that a command starts, which is ended if it has not ended itself."""
        words = [sys.executable, "-P", "-m", "workbench.cli", *shlex.split(command)[1:], *options]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.place), "PYTHONPATH": str(ROOT)}
        with (self.place / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *words, cwd=self.place, env=environment, stdin=DEVNULL, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
            sys.stdout.write(self.log)  # shown if the test fails

    @property
    def log(self) -> str:
        """What its workers have said."""
        return (self.place / "log").read_text()


@pytest.fixture
def commands(served: Served) -> dict[str, list[str]]:
    """The commands of the manual: `here` and `there`, for the port at which the server is."""
    blocks = [one for one in code_blocks() if (one.path.name, one.heading) == ("machines.md", "Workers elsewhere")]
    here, there = [block.code for block in blocks if block.reason is None]
    port = served.info.url.rpartition(":")[2]
    return {"here": here.splitlines(), "there": there.replace("8765", port).splitlines()}


async def test_a_worker_elsewhere_does_tasks_and_gives_back_the_one_that_it_is_ended_in(
    served: Served, repository: Path, on_disk: Path, commands: dict[str, list[str]]
) -> None:
    workbench, gpu, (command,) = served.workbench, Elsewhere(on_disk), commands["there"]
    await asyncio.to_thread(run_commands, commands["here"], repository)
    shutil.move(repository / "token", on_disk / "token")  # brought to the other machine
    (repository / "base.txt").write_text("of the project\n")
    git("add", ".", cwd=repository)
    git("commit", "-qm", "base", cwd=repository)
    run = f"! ls {repository} 2> listing; cat base.txt > made.txt; echo here >> made.txt"
    first = await given.task(workbench, "work", run=run)
    async with gpu.worker(command) as process:
        (artifact,) = (await given.reached(workbench, first, "completed", "failed"))["artifacts"]
        commit = artifact.removeprefix("commit:")
        assert git("show", f"{commit}:made.txt", cwd=repository) == "of the project\nhere"
        assert git("show", "--format=", "--name-only", commit, cwd=repository).split() == ["listing", "made.txt"]
        listing = git("show", f"{commit}:listing", cwd=repository)  # of the project, from the box
        assert "denied" in listing.lower() or "No such file" in listing

        run = "echo 1 > kept; git add .; git commit -qm one; echo 2 > left; echo begun; sleep 600"
        second = await given.task(workbench, "long", run=run)
        await given.until(lambda: "| begun" in gpu.log)
        assert (await log_of_gpu(served))[0] == "running"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 25) == 0
    task = await given.task_now(workbench, second)
    assert (task["status"], task["attempts"][0]["outcome"]) == ("pending", "released")
    kept = await given.until(lambda: kept_files(served, second))
    assert kept == {"kept", "left"}
    assert not (workbench.settings.worktree(task["attempts"][0]["worktree"]) / "kept").exists()
    await workbench.call("revoke_agent", agent_id="gpu")
    state, lines = await log_of_gpu(served)
    assert (state, sum(line.endswith("| begun") for line in lines)) == ("ended", 1)
    assert lines == [line for line in gpu.log.splitlines() if " INFO " in line or " WARNING " in line]


async def log_of_gpu(served: Served) -> tuple[str, list[str]]:
    """Whether the worker of the machine `gpu` runs, and its log, as the person sees them."""
    process = await served.workbench.call("get_agent_process_info", agent_id="gpu", log_lines=1_000)
    return process["state"], process["log_tail"]


async def kept_files(served: Served, task_id: int) -> set[str]:
    """The files that the first attempt at a task changed, once they are kept."""
    (attempt,) = (await given.task_now(served.workbench, task_id))["attempts"]
    if attempt["kept"] is None:
        return set()
    diff = await served.workbench.call("get_attempt_diff", task_id=task_id, attempt=1)
    return {file["path"] for file in diff["files"]}


@pytest.fixture
async def proxy(served: Served) -> AsyncIterator[FaultyProxy]:
    """The link to the server."""
    async with FaultyProxy(served.info.url) as proxy:
        yield proxy


@pytest.fixture
async def request_of(served: Served) -> Callable[..., JoinRequest]:
    """A request to join the project by an address, with the token of a machine."""
    token = (await served.workbench.call("add_machine", name="gpu"))["token"]
    return lambda url, **more: JoinRequest(url, **{"token": token, "persona_id": "implementer"} | more)


@asynccontextmanager
async def supervising(config: WorkerConfig) -> AsyncIterator[Supervisor]:
    """A worker in this process, which is stopped at the end."""
    supervisor = Supervisor(replace(config, heartbeat_seconds=0.1))
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor
    finally:
        supervisor.stop()
        await running


def place_of(config: WorkerConfig) -> Path:
    """The directory of its worktree."""
    assert config.worktree is not None
    return config.worktree.path


async def test_a_cut_link_is_a_pause_while_the_branch_is_taken_and_sent_and_the_command_runs(
    served: Served,
    on_disk: Path,
    proxy: FaultyProxy,
    request_of: Callable[..., JoinRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_pieces, "PIECE", 100)
    monkeypatch.setitem(served.workbench.settings.__dict__, "setup", "mkdir out; echo $GREETING > out/ready")
    monkeypatch.setitem(served.workbench.settings.__dict__, "env", {"GREETING": "hello"})
    served.workbench.settings.model_fields_set.update(("setup", "env"))

    async def cut(operation: str) -> None:
        proxy.fail(operation, "dropped")
        await proxy.until(proxy.failed, operation, 2)
        proxy.mend(operation)

    config = (await asyncio.gather(cut("read_worktree_bundle"), join(request_of(proxy.url), on_disk)))[1].config
    assert proxy.passed["read_worktree_bundle"] > 2
    assert (await join(request_of(proxy.url), on_disk)).config.token == config.token  # the same worker
    run = "touch begun; until [ -e go ]; do sleep 0.05; done; seq 999 > made; seq 99 > out/big.csv; "
    run += "grep -q hello out/ready || exit 1; echo out > .gitignore; ln -s /etc/passwd out/link; "
    run += "cat > $WORKBENCH_RESULT <<END\n"
    run += f'{{"result": {{}}, "artifacts": ["{place_of(config)}/out/big.csv", "out/link", "made"]}}\nEND\n'
    task_id = await given.task(served.workbench, run=run)
    async with supervising(config):
        await given.appeared(place_of(config) / "begun")
        await cut("heartbeat_and_get_tasks")
        ends = ("send_worktree_bundle", "import_worktree_bundle", "send_artifact", "finish_attempt")
        ending = asyncio.gather(*map(cut, ends))
        await asyncio.sleep(0)
        (place_of(config) / "go").touch()
        await ending
        task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert (task["status"], len(task["attempts"])) == ("completed", 1), task["error_message"]
    assert proxy.passed["send_worktree_bundle"] > 3
    assert (task["artifacts"][:3], proxy.passed["send_artifact"]) == (["out/big.csv", "out/link", "made"], 4)
    shown = await served.workbench.call("get_task_artifact", task_id=task_id, name="out/big.csv")
    assert (shown["source"], shown["bytes"]) == ("sent", 288)


async def test_an_attempt_elsewhere_keeps_within_the_smallest_request_that_the_settings_permit(
    served: Served,
    on_disk: Path,
    request_of: Callable[..., JoinRequest],
    repository: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (least,) = (one.ge for one in Settings.model_fields["max_frame_bytes"].metadata if isinstance(one, Ge))
    served.workbench.settings.__dict__["max_frame_bytes"] = least
    config = (await join(request_of(served.info.url), on_disk)).config
    run = f"head -c {2 * least} /dev/urandom > made; mkdir out; echo out > .gitignore; cp made out/same; "
    run += "python3 -c 'print(chr(1) * 20_000)'; "
    run += """echo '{"result": {}, "artifacts": ["out/same"]}' > $WORKBENCH_RESULT"""
    async with supervising(config):
        task_id = await given.task(served.workbench, run=run)
        task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert task["status"] == "completed", task["error_message"]
    shown = await served.workbench.call("get_task_artifact", task_id=task_id, name="out/same")
    assert (shown["source"], shown["bytes"]) == ("sent", 2 * least)
    (commit,) = [name.removeprefix("commit:") for name in task["artifacts"] if name.startswith("commit:")]
    assert git("cat-file", "-s", f"{commit}:made", cwd=repository) == str(2 * least)
    assert "note was not sent" not in caplog.text


async def test_a_worker_that_is_stopped_ends_in_time_although_nothing_answers_any_more(
    served: Served,
    on_disk: Path,
    proxy: FaultyProxy,
    request_of: Callable[..., JoinRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervised, "LEAVE_SECONDS", 0.2)
    config = (await join(request_of(proxy.url), on_disk)).config
    await given.task(served.workbench, run="touch begun; exec sleep 600")
    async with asyncio.timeout(30), supervising(config):
        await given.appeared(place_of(config) / "begun")
        for operation in ("send_worktree_bundle", "finish_attempt", "heartbeat_and_get_tasks"):
            proxy.fail(operation, "silent")
    assert proxy.failed["finish_attempt"] == 1


async def test_an_attempt_begins_without_what_one_whose_lease_was_lost_has_left_or_broken(
    served: Served, on_disk: Path, repository: Path, proxy: FaultyProxy, request_of: Callable[..., JoinRequest]
) -> None:
    config = (await join(request_of(proxy.url), on_disk)).config
    run = "[ $WORKBENCH_ATTEMPT = 2 ] && exec touch made; git=$(git rev-parse --git-dir); touch left; git add .; "
    run += "git commit -qm left; rm -rf $git/refs $git/HEAD; touch broken; exec sleep 600"
    task_id = await given.task(served.workbench, run=run, lease_seconds=1.5)
    async with supervising(config):
        await given.appeared(place_of(config) / "broken")
        proxy.fail("heartbeat_and_get_tasks", "dropped")
        await given.until(lambda: ended(served, task_id))
        proxy.mend("heartbeat_and_get_tasks")
        task = await given.reached(served.workbench, task_id, "completed", "failed")
    (commit,) = (one.removeprefix("commit:") for one in task["artifacts"])
    assert git("show", "--format=", "--name-only", commit, cwd=repository) == "made"
    assert [attempt["agent_id"] for attempt in task["attempts"]] == ["gpu", "gpu"]


async def ended(served: Served, task_id: int) -> bool:
    """Whether the first attempt at a task has ended."""
    (first, *_) = (await given.task_now(served.workbench, task_id))["attempts"]
    return first["ended_at"] is not None


@pytest.mark.skipif(os.geteuid() != 0 or not abilities().abi, reason="only root makes device files")
async def test_a_task_gets_the_gpu_of_the_machine_where_it_is_done_and_another_task_sees_none(
    served: Served, on_disk: Path, request_of: Callable[..., JoinRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench, device = served.workbench, on_disk / "device"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    opens = f'test "$CUDA_VISIBLE_DEVICES,$OMP_NUM_THREADS" = far0,2 && echo used >> {device}'
    first = await given.task(workbench, run=opens, needs={"gpu": 1, "cpu": 2}, max_retries=0)
    without = f'test "${{CUDA_VISIBLE_DEVICES-unset}}" = "" && ! echo used >> {device}'
    second = await given.task(workbench, run=without, max_retries=0)
    assert (await given.task_now(workbench, first))["waits_for"].startswith("a GPU (none there)")  # also one processor
    monkeypatch.setenv("XDG_STATE_HOME", str(on_disk / "state"))
    lends = {"gpus": [{"name": "far0", "devices": [str(device)]}], "cpu": 2}
    monkeypatch.setenv("WORKBENCH_RESOURCES", json.dumps(lends))  # there: the server has been started
    config = (await join(request_of(served.info.url), on_disk / "worker")).config
    async with supervising(config):
        for task_id in (first, second):
            task = await given.reached(workbench, task_id, "completed", "failed")
            assert task["status"] == "completed", task["error_message"]
    leased = (await given.task_now(workbench, first))["attempts"][0]["leased"]
    assert (leased["devices"], leased["machine"]) == (["far0"], "elsewhere:gpu")


async def test_what_a_machine_lacks_is_said_in_a_coded_line(
    served: Served, on_disk: Path, request_of: Callable[..., JoinRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = served.info.url
    monkeypatch.setenv("WORKBENCH_CONFINEMENT_NAMESPACES", "off")
    monkeypatch.setattr(joining, "CLOCK_SECONDS", -1.0)
    monkeypatch.setattr(joining, "__version__", "0.1")
    joined = await join(request_of(url), on_disk)
    lacks = ["CLOCK_DIFFERS", "VERSION_DIFFERS"]
    assert [note.partition(":")[0] for note in joined.notes] == ["NO_NAMESPACES"] * bool(abilities().abi) + lacks
    taken = joining.own_directory(request_of(url), on_disk / "other")
    with joining.own_directory(request_of(url), on_disk / "other"), pytest.raises(Unavailable, match="--directory"):
        taken.__enter__()
    for module in (joining, sandbox):
        monkeypatch.setattr(module, "abilities", lambda: no_landlock(0, filtered=False))
    error = await given.refuses("CONFINEMENT_UNAVAILABLE", join(request_of(url), on_disk))
    assert "WORKBENCH_CONFINEMENT=off" in error.message
    monkeypatch.setenv("WORKBENCH_CONFINEMENT", "off")
    monkeypatch.setenv("PATH", "/nowhere")
    await given.refuses("GIT_MISSING", join(request_of(url), on_disk))
    with monkeypatch.context() as patched:
        patched.setattr("workbench.services.processes.profiles.missing", lambda profile: ["claude"])
        assert "claude" in (await given.refuses("PROFILE_UNAVAILABLE", join(request_of(url), on_disk))).message


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="needs git-lfs")
async def test_what_of_a_repository_does_not_come_to_another_machine_is_said_before_a_worker_begins_there(
    served: Served,
    on_disk: Path,
    repository: Path,
    request_of: Callable[..., JoinRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'1' * 64}\nsize 9\n"
    (repository / "a.bin").write_text(pointer)
    (repository / ".gitattributes").write_text("# filter=lfs\n*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (repository / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n')
    git("add", ".", cwd=repository)
    git(
        "update-index", "--add", "--cacheinfo", f"160000,{git('rev-parse', 'HEAD', cwd=repository)},lib", cwd=repository
    )
    git("commit", "-qm", "large", cwd=repository)
    monkeypatch.setitem(served.workbench.settings.__dict__, "include", (".env",))
    served.workbench.settings.model_fields_set.add("include")
    configured = '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\trequired = true\n'
    (on_disk / "gitconfig").write_text(configured)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(on_disk / "gitconfig"))
    joined = await join(request_of(served.info.url), on_disk / "work")
    notes = [note for note in joined.notes if "_STAY" in note]
    assert [(note.partition(":")[0], note.count("(*.bin)") + note.count("(lib)")) for note in notes] == [
        ("LFS_STAYS", 1),
        ("SUBMODULES_STAY", 1),
        ("INCLUDE_STAYS", 0),
    ]
    assert (place_of(joined.config) / "a.bin").read_text() == pointer


def test_the_directory_of_a_worker_is_not_the_persons_repository(repository: Path) -> None:
    before = repository.stat().st_mode
    with pytest.raises(Unavailable, match=r"DIRECTORY_TAKEN: .* has a repository"):
        joining.own_directory(JoinRequest("http://127.0.0.1:1", None), repository).__enter__()
    assert (repository.stat().st_mode, (repository / "worker.lock").exists()) == (before, False)


async def test_who_may_not_join_is_told_what_to_do(
    served: Served, on_disk: Path, request_of: Callable[..., JoinRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = served.info.url
    await given.refuses("MACHINE_TOKEN_REQUIRED", join(request_of(url, token=None), on_disk))
    await given.refuses("PERSONA_REQUIRED", join(request_of(url, persona_id=None), on_disk))
    assert "ssh -L" in (await given.refuses("NO_SERVER", join(request_of("http://127.0.0.1:1"), on_disk))).message
    (token := on_disk / "token").write_text("wbh_x")
    token.chmod(0o644)
    words = ("worker", "--server", url, "--directory", str(on_disk))
    assert "chmod 600" in typed(*words, "--token-file", str(token)).err
    token.write_text("# of gpu\nwbh_x")
    token.chmod(0o600)
    assert "path" in (await given.refuses("BAD_URL", join(request_of(f"{url}/mcp"), on_disk))).message
    for far, expected in ((url, "INVALID_TOKEN: "), ("", "BAD_URL: ")):
        options = ("--persona", "implementer", "--token-file", str(token), "--directory", str(on_disk / "new"))
        assert (await asyncio.to_thread(typed, "worker", "--server", far, *options)).err.startswith(expected)
    for stays in ("--worktree=lab", "--function=module:name", "--definition=ada", "--include=rule", "--mcp"):
        told = typed(*words, stays).err
        assert "NOT_ELSEWHERE" in told
        assert f"{stays.partition('=')[0]} and --server" in told
    await given.refuses("BAD_FUNCTION", join(request_of(url, profile="python"), on_disk / "python"))
    assert "--server" in typed("worker", "--directory", str(on_disk)).err
    first = await join(request_of(url), on_disk)
    old, new = (Settings(project=on_disk).agent_sessions / name for name in "12")
    for conversation, days in ((old, 31), (new, 29)):
        conversation.mkdir(parents=True)
        os.utime(conversation, (at := time.time() - days * 86_400, at))
    await served.workbench.call("revoke_agent", agent_id=first.agent_id)
    assert (await join(request_of(url), on_disk)).agent_id != first.agent_id
    assert (old.exists(), new.exists()) == (False, True)
    await served.workbench.call("remove_machine", name="gpu")
    await given.refuses("INVALID_TOKEN", join(request_of(url), on_disk))


ASK = """
import json, os, pathlib, urllib.request
body = json.dumps({"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Greet."}]}).encode()
base, token = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
headers = {"x-api-key": token, "content-type": "application/json", "anthropic-version": "2023-06-01"}
answer = json.load(urllib.request.urlopen(urllib.request.Request(base + "/v1/messages", body, headers)))
pathlib.Path(os.environ["WORKBENCH_RESULT"]).write_text(json.dumps({"result": answer}))
"""


async def test_over_tls_a_worker_and_its_models_are_reached_once_the_certificate_is_named_that_nobody_has_signed(
    served: Served,
    on_disk: Path,
    settings: Settings,
    request_of: Callable[..., JoinRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(on_disk / "config"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr("workbench.services.processes.profiles._is_key_kept", lambda variable: False)  # there
    needs = {"passes": ["ANTHROPIC_API_KEY"], "needs": ["$ANTHROPIC_API_KEY"]}
    profile = {"summary": "Asks.", "command": ["{python}", "-c", ASK], **needs}
    (settings.home / "profiles").mkdir(parents=True)
    (settings.home / "profiles" / "asks.yaml").write_text(json.dumps(profile))
    trust(settings.project, withheld(settings.project))
    async with upstream(says({"said": "hello"})) as model, tls_in_front(served.info.url, on_disk) as url:
        model_keys.keep(PROVIDERS["anthropic"], "sk-the-persons-own", model.url)
        error = await given.refuses("CERTIFICATE_NOT_TRUSTED", join(request_of(url), on_disk))
        assert "self-signed certificate" in error.message
        await given.refuses("BAD_CERTIFICATE", join(request_of(url, certificate=on_disk / "key.pem"), on_disk))
        how = {"certificate": on_disk / "certificate.pem", "profile": "asks"}
        async with supervising((await join(request_of(url, **how), on_disk)).config):
            task = await given.reached(served.workbench, await given.task(served.workbench), "completed", "failed")
    assert (task["status"], task["result_data"]) == ("completed", {"said": "hello"}), task["error_message"]
    assert [asked.headers["x-api-key"] for asked in model.asked] == ["sk-the-persons-own"]
    transcript = await served.workbench.call("get_transcript", task_id=task["id"])
    assert "Greet." in json.dumps(transcript["messages"])
