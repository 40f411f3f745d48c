"""The error of a command that its box refused a path names the path and the setting that opens it."""

from __future__ import annotations

import shutil
import socket
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.confinement.scene import Scene
from tests.users import SYSTEM_PYTHON
from workbench.confinement import abilities
from workbench.confinement.box import Box, Mount
from workbench.confinement.refusals import HEADING, SHOWN, TellingLines, explanation

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _home(scene: Scene) -> None:
    """Files in a person's home that programs may want."""
    scene.home.mkdir(exist_ok=True)
    (scene.home / "data.csv").write_text("1,2,3")
    tool = scene.home / "tools" / "bin" / "frob"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    for path in (scene.home, *scene.home.rglob("*")):
        path.chmod(0o755)


def test_what_proc_tells_of_a_process_is_opened_as_a_whole(tmp_path: Path) -> None:
    box = Box(write=(), read=(), scratch=tmp_path)
    for path in ("/proc/self/statm", "/proc/4000000/statm"):  # of a process that is there, and of one that has ended
        said = explanation([f"PermissionError: [Errno 13] Permission denied: '{path}'"], box, tmp_path)
        assert "/proc cannot be read, by its rules for files: the setting confinement_read opens it" in said
        assert not explanation([f"cat: {path}: Permission denied"], replace(box, read=(Path("/proc"),)), tmp_path)


def test_data_that_a_shell_cannot_change_is_told_by_its_name_in_the_worktree(on_disk: Path) -> None:
    worktree, project = on_disk / "worktree", on_disk / "project"
    worktree.mkdir()
    (project / "data").mkdir(parents=True)
    (data := project / "data" / "runs.csv").touch()
    mounts = (Mount(project / "data", project / "data"),)
    own = {"worktree": worktree, "project": project, "mounts": mounts, "namespaces": frozenset({"mount"})}
    box = Box(write=(worktree,), read=(), scratch=on_disk / "scratch", **own)
    said = explanation(["/bin/sh: 1: cannot create data/runs.csv: Read-only file system"], box, worktree)
    assert f"{data} cannot be written" in said
    assert "once the workplace does not name it" in said
    assert not explanation(["/bin/sh: 1: cannot create notes.txt: Read-only file system"], box, worktree)


def test_an_untrusted_setting_is_named_as_untrusted(tmp_path: Path) -> None:
    box = Box(write=(), read=(), scratch=tmp_path, untrusted=("confinement_write", "confinement_read"))
    said = explanation([f"touch: cannot touch '{tmp_path.parent}/x': Permission denied"], box, tmp_path)
    assert "sets confinement_write, but you have not trusted it: `workbench trust` shows it" in said


def explain(scene: Scene, script: str) -> list[str]:
    """The explanation of a script that fails in its box."""
    done = scene.work(script)
    assert done.returncode != 0, done.stdout
    telling = TellingLines()
    for line in done.stdout.splitlines():
        telling.add(line)
    heading, *found = explanation(telling.lines, scene.box, scene.worktree).splitlines() or [HEADING]
    assert heading == HEADING
    return [line.removeprefix("- ") for line in found]


def python(program: str) -> str:
    """A script that runs a program from a file, so that a traceback shows its lines."""
    return f"cat > program.py <<'END'\n{program}\nEND\n{SYSTEM_PYTHON} program.py"


REACHING = python("import socket; socket.create_connection(('127.0.0.1', 9))")
REACHING_BY_NAME = python(
    "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9))\n"
    "except OSError as error:\n    raise SystemExit(f'127.0.0.1:9: {error}')"
)
SERVING = python("import socket; socket.create_server(('127.0.0.1', 0))")
LOCKING = python("import multiprocessing; multiprocessing.Lock()")
READING_STATE = "cat $P/.aiswarm/server.json"
OWN = (REACHING, REACHING_BY_NAME, SERVING, LOCKING, READING_STATE)

FILES, NETWORK = "by its rules for files", "by its rules for the network"
OF_OWN = 'the setting confinement_namespaces, with "auto", gives each command its own.'
CANNOT_BE_READ = (
    f"cannot be read, {FILES}: the setting confinement_read opens it (confinement_write: to write it, too)."
)
CANNOT_BE_WRITTEN = f"cannot be written, {FILES}: the setting confinement_write opens it."


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("cat $H/data.csv", "{home}/data.csv " + CANNOT_BE_READ),
        ("ls $H/tools/bin", "{home}/tools/bin " + CANNOT_BE_READ),
        ("ln -s $H/data.csv data.csv; cat data.csv", "{worktree}/data.csv " + CANNOT_BE_READ),
        ("cat $UP/home/data.csv", "{home}/data.csv " + CANNOT_BE_READ),
        (python("import os; open(os.environ['UP'] + '/home/data.csv')"), "{home}/data.csv " + CANNOT_BE_READ),
        ("echo x > $H/new.txt", "{home}/new.txt " + CANNOT_BE_WRITTEN),
        ('echo x > "$H/a new.txt"', "{home}/a new.txt " + CANNOT_BE_WRITTEN),
        ("LC_ALL=C.UTF-8 mkdir $H/new", "{home}/new " + CANNOT_BE_WRITTEN),
        (
            READING_STATE,
            "{project}/.aiswarm/server.json belongs to Workbench and cannot be used, {files}: no setting opens it.",
        ),
        (
            "cat /dev/tty",
            "The device /dev/tty is closed, {files}: the setting confinement_write opens it.",
        ),
        (
            LOCKING,
            "It cannot use /dev/shm, which locks between processes need, {files}: "
            + (OF_OWN if abilities().namespaces else "the setting confinement_write opens it."),
        ),
        (
            REACHING,
            "It can connect to no port, {network}: the setting confinement_connect opens others.",
        ),
        (
            REACHING_BY_NAME,
            "It cannot connect to port 9, {network}: the setting confinement_connect opens it, on every host.",
        ),
        (
            python("import socket; socket.getaddrinfo('example.org', 443)"),
            'It cannot look up names of machines, {network}: the setting network opens hosts, such as "pypi.org".',
        ),
        (
            SERVING,
            "It cannot listen on a port, {network}: "
            + (OF_OWN if abilities().namespaces else "no setting allows that."),
        ),
    ],
)
def test_a_refusal_is_named_with_the_setting_that_opens_it(scene: Scene, script: str, said: str) -> None:
    if scene.namespaces and script in OWN:
        pytest.skip("a box has these of its own")
    places = {"home": scene.home, "worktree": scene.box.inside(scene.worktree), "project": scene.project}
    assert said.format(**places, files=FILES, network=NETWORK) in explain(scene, script)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (python("import multiprocessing; multiprocessing.Manager()"), "It cannot make UNIX sockets"),
        ("echo 'Error: listen EPERM: operation not permitted out/a.sock'; false", "It cannot make UNIX sockets"),
        ("echo 'psutil.AccessDenied: (pid=7)'; false", f"/proc {CANNOT_BE_READ}"),
        ("echo 'Error: EACCES: permission denied, uv_resident_set_memory'; false", f"/proc {CANNOT_BE_READ}"),
        ("echo \"could not create cache path $H/.pytest_cache: [Errno 30] Read-only file system: '$H/x'\"; false", ""),
    ],
)
def test_what_programs_do_not_say_of_a_refusal_is_known(scene: Scene, script: str, said: str) -> None:
    told = explain(scene, script)
    assert [line[: len(said)] for line in told if "/dev/shm" not in line] == ([said] if said else [])


def test_a_checkout_that_is_only_read_is_told_as_that(scene: Scene) -> None:
    reading = replace(scene.box, write=tuple(path for path in scene.box.write if path != scene.worktree))
    place = reading.inside(scene.worktree) / "new.txt"
    (told,) = explanation(
        [f"sh: 1: cannot create '{place}': Read-only file system"], reading, scene.worktree
    ).splitlines()[1:]
    assert told == f"- {place} is in a checkout that may only be read, {FILES}: give the task a worktree."


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_a_refused_port_is_named_for_curl(scene: Scene) -> None:
    if scene.namespaces:
        pytest.skip("nothing is at this port of the machine")
    assert explain(scene, "curl -sS http://127.0.0.1:9/") == [
        f"It cannot connect to port 9, {NETWORK}: the setting confinement_connect opens it, on every host."
    ]


def test_a_port_of_this_machine_that_a_box_with_its_own_loopback_does_not_reach_is_named(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = explain(scene, f"echo 'Error 111 connecting to localhost:{port}. Connection refused.'; exit 1")
    expected = [
        f"It cannot connect to port {port} of this machine, because its loopback is its own, {NETWORK}: "
        f'the setting private opens it, with "127.0.0.1:{port}".'
    ]
    assert said == (expected if scene.namespaces else [])
    assert explain(scene, f"echo 'Error 111 connecting to localhost:{port}. Connection refused.'; exit 1") == []


def test_a_program_missing_only_in_the_box_is_named_with_its_directory(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = scene.home / "tools"
    monkeypatch.setenv("PATH", f"{tools / 'bin'}:/usr/bin:/bin")
    assert explain(scene, "frob") == [
        f"The program frob is outside it, at {tools}/bin/frob, {FILES}: add {tools} to the setting confinement_read."
    ]
    (scene.home / ".local").mkdir()
    tools.rename(local := scene.home / ".local" / "tools")
    local.joinpath("bin").rename(scene.home / ".local" / "bin")
    monkeypatch.setenv("HOME", str(scene.home))
    monkeypatch.setenv("PATH", f"{scene.home}/.local/bin:/usr/bin:/bin")
    assert explain(scene, "frob")[0].endswith(f"add {scene.home}/.local/bin to the setting confinement_read.")
    monkeypatch.setenv("PATH", f"{tools / 'bin'}:/usr/bin:/bin")
    opened = replace(scene.box, read=(*scene.box.read, tools))
    assert explanation(["sh: 1: frob: not found"], opened, scene.worktree) == ""


@pytest.mark.parametrize(
    "script",
    [
        "exit 3",
        "echo Permission denied; false",
        "cat /no/such/file",
        "echo x > own; chmod 000 own; cat own /no/such/file",
        "nothing-of-this-name",
        "echo '/bin/sh: 1: nothing: Permission denied'; false",
        "echo 'make: /bin/sh: Permission denied'; false",
        "echo '/usr/bin/tee: nothing: Permission denied'; false",
        "echo '/usr/share/perl/strict.pm:12: PermissionError'; false",
        "echo '  File \"/usr/share/perl/strict.pm\", line 3, in get: Permission denied'; false",
        "echo 'Permission denied while /usr/lib/python3/dist-packages was read'; false",
        "echo 'GET /v1/models: 403 Permission denied'; false",
    ],
)
def test_other_failures_are_not_blamed_on_the_box(scene: Scene, script: str) -> None:
    assert explain(scene, script) == []


def test_a_read_only_file_system_is_known_as_a_refusal_to_write(scene: Scene) -> None:
    data = scene.home / "data.csv"
    assert explain(scene, f"echo 'Read-only file system: see /usr/share and {scene.home}/none'; false") == []
    for text in (
        f"cannot touch '{data}': Read-only file system",
        f"Error: EROFS: read-only file system, open '{data}'",
    ):
        said = explanation([text], scene.box, scene.worktree)
        assert said.splitlines()[1:] == [f"- {data} {CANNOT_BE_WRITTEN}"]


def test_a_new_file_below_a_link_is_known_as_a_refusal_to_write(scene: Scene) -> None:
    (scene.worktree / "data").symlink_to(scene.home)
    text = "touch: cannot touch 'data/new': Read-only file system"
    said = explanation([text], scene.box, scene.worktree)
    assert said.splitlines()[1:] == [f"- {scene.box.inside(scene.worktree)}/data/new {CANNOT_BE_WRITTEN}"]


def test_the_name_of_shared_memory_is_not_taken_for_a_file(scene: Scene) -> None:
    script = "echo \"PermissionError: [Errno 13] Permission denied: '/psm_0123abcd'\"; false"
    expected = [] if scene.namespaces else [f"It cannot use /dev/shm, which locks between processes need, {FILES}: "]
    assert [line.partition("the setting")[0] for line in explain(scene, script)] == expected


def test_a_refused_file_in_dev_shm_is_explained_like_any_other(scene: Scene) -> None:
    if scene.namespaces:
        pytest.skip("a box has a /dev/shm of its own")
    with TemporaryDirectory(dir="/dev/shm") as directory:
        (data := Path(directory, "data.csv")).write_text("1")
        assert explain(scene, f"cat {data}") == [f"{data} {CANNOT_BE_READ}"]


def test_an_explanation_omits_allowed_paths_and_shortens_a_long_list(scene: Scene) -> None:
    box = replace(scene.box, write=(*scene.box.write, scene.home), connect=(9,))
    lines = [f"{scene.home}/data.csv: Permission denied", "connect to 127.0.0.1 port 9: Permission denied"]
    assert explanation(lines, box, scene.worktree) == ""
    assert explanation(lines, replace(scene.box, enforce=False), scene.worktree) == ""
    for number in range(SHOWN + 2):
        (scene.home / str(number)).touch()
    lines = [f"{scene.home}/{number}: Permission denied" for number in range(SHOWN + 2)]
    assert explanation(lines, scene.box, scene.worktree).splitlines()[-1] == "- and 2 more"


def test_a_program_may_print_any_path(scene: Scene) -> None:
    for path in ("/" + "x" * 5_000, "/\0", "/a/../..", str(Path("/proc/self/root/etc"))):
        explanation([f"{path}: Permission denied"], scene.box, scene.worktree)
