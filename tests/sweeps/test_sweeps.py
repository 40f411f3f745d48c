"""A sweep executes each combination once, and one run's failure is that run's only."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests import given
from tests.sweeps.lab import SweepLab
from workbench.cli.output import PartialFailure
from workbench.cli.sweeps.request import of_options
from workbench.errors import BadInput, Conflict, NotFound
from workbench.process import is_running
from workbench.rules.secrets.forms import MASK
from workbench.sweeps.leftovers import only_one

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

FAULTS = {
    "well": "'well'",
    "raises": "1 / 0",
    "asks": "input('name?')",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "moves": "import os; os.chdir('/'); print('moved')",
    "prints": "for _ in range(100): print('x' * 1_000_000)",
    "hangs": "import subprocess, time; left = subprocess.Popen(['sleep', '1000'], start_new_session=True);"
    " print(left.pid, flush=True); time.sleep(1000)",
    "grows": "held = bytearray(600_000_000); import time; time.sleep(1000)",
}
CODES = {
    "raises": "CELL_FAILED",
    "asks": "INPUT_REQUESTED",
    "dies": "KERNEL_DIED",
    "hangs": "RUN_TIMEOUT",
    "grows": "RUN_OUT_OF_MEMORY",
}


def test_a_fault_is_one_coded_failure_of_its_run(lab: SweepLab) -> None:
    """Two sweeps at once: what hangs is to be ended soon, and what is well is not, however busy the machine."""
    notebook, before = lab.notebook("faults.ipynb", "fault: str = 'well'", f"exec({FAULTS!r}[fault])"), Path.cwd()
    others = [fault for fault in FAULTS if fault != "hangs"]
    with ThreadPoolExecutor() as both:
        hanging = both.submit(lab.sweep, notebook, {"timeout": 20, "name": "hang"}, parameters={"fault": ["hangs"]})
        lab.sweep(notebook, {"timeout": 120, "memory": 500_000_000}, parameters={"fault": others})
        hanging.result()
    assert Path.cwd() == before
    faulty = {run["parameters"]["fault"]: run for run in lab.runs("faults") + lab.runs("hang")}
    assert {fault: (run["state"], run["error_code"]) for fault, run in faulty.items()} == {
        fault: ("failed" if fault in CODES else "completed", CODES.get(fault)) for fault in FAULTS
    }
    assert [fault for fault, run in faulty.items() if "\n" in (run["error"] or "")] == []
    assert [fault for fault, run in faulty.items() if not (lab.place / run["output"]).is_file()] == []
    # The executed notebook has another cell, with the values of the parameters.
    assert faulty["raises"]["error"] == "Cell 2: ZeroDivisionError: division by zero"
    assert faulty["dies"]["error"] == "The kernel ended by itself in cell 2."
    assert faulty["asks"]["error"].startswith("Cell 2 asks for input")
    assert (lab.place / faulty["prints"]["output"]).stat().st_size < 110_000
    assert "max_sweep_output_bytes" in lab.printed(faulty["prints"])
    left = int(lab.printed(faulty["hangs"]))
    assert not psutil.pid_exists(left) or not is_running(psutil.Process(left))


def test_each_run_gets_its_values_and_knows_its_record_and_its_session(lab: SweepLab) -> None:
    known = "*map(os.environ.get, ('WORKBENCH_RUN', 'WORKBENCH_SESSION'))"
    prints = f"import os\nprint(seed, rate, os.getcwd(), {known})"
    notebook = lab.notebook("values.ipynb", "seed: int = 0\nrate = 0.5", prints)
    document = json.loads(notebook.read_text())
    del document["metadata"]["kernelspec"]["language"]  # it is that of the kernel
    notebook.write_text(json.dumps(document))
    lab.sweep(notebook, parameters={"seed": [1, 2]}, repeat=2)
    lab.sweep(notebook, {"name": "shared", "share": True}, parameters={"seed": [1]})
    own, [shared] = lab.runs("values"), lab.runs("shared")
    assert [lab.printed(run).split() for run in [*own, shared]] == [
        [str(run["parameters"]["seed"]), "0.5", str(lab.place), f"{run['id']}:1", str(run["session_id"])]
        for run in [*own, {**shared, "session_id": None}]
    ]
    assert sorted(run["parameters"]["seed"] for run in own) == [1, 1, 2, 2]
    assert len({run["session_id"] for run in own}) == 4
    assert "WORKBENCH_RUN" not in os.environ


def test_no_record_of_a_run_has_a_secret_of_its_kernel_or_of_what_it_was_given(
    here: SweepLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "hunter2-of-the-person")
    shows = "import os\nos.system('echo native $DB_PASSWORD >&2')\nprint('shown', os.environ['DB_PASSWORD'], key)"
    notebook = here.notebook("secret.ipynb", "key: str = ''\nfails: bool = False", shows, "assert not fails, key")
    keys = [f"sk-{'aB3dE5fG' * 4}{number}" for number in (1, 2)]
    here.sweep(notebook, parameters={"key": keys, "fails": [False, True]})
    runs = here.runs("secret")
    assert sorted(run["state"] for run in runs) == ["completed"] * 2 + ["failed"] * 2
    assert {here.printed(run).splitlines()[0] for run in runs} >= {f"shown {MASK} {MASK}"}
    texts = [str(runs), *(file.read_text() for file in (here.settings.home / "runs" / "secret").iterdir())]
    assert [text for text in texts if "hunter2-of" in text or keys[0][:20] in text] == []


def test_agents_that_a_run_has_started_end_with_it_however_it_ends_unless_it_shares(here: SweepLab) -> None:
    notebook = here.notebook(
        "spawns.ipynb",
        "end = ''",
        "%load_ext workbench\n%workbench start",
        "wb.call('spawn_agent', persona_id='implementer')['agent_id']",
        "exec(end)",
    )
    ends = ("pass", "1 / 0", "import os; os._exit(3)")
    here.sweep(notebook, {"name": "spawns"}, parameters={"end": ends})
    here.sweep(notebook, {"name": "spawns-shared", "share": True})
    spawned = here.call("get_managed_agents")["agents"]
    own = {run["session_id"] for run in here.runs("spawns")}
    running = {one["session_id"]: one["process"]["running"] for one in spawned}
    assert running == {**dict.fromkeys(own, False), None: True}
    [shared] = [one for one in spawned if one["process"]["running"]]
    here.call("terminate_agent", agent_id=shared["agent_id"])


def test_agents_that_a_killed_try_of_a_run_has_left_end_before_the_next_try(here: SweepLab) -> None:
    session = here.session("sweep tried", "tried 1")
    agent = here.agent(session)
    here.sweep(here.notebook("tried.ipynb", "seed = 0", "print(seed)"))
    [run] = here.runs("tried")
    assert run["session_id"] != session
    assert agent not in here.running_agents()


def test_failed_runs_are_retried_by_the_name_of_the_sweep_alone(here: SweepLab) -> None:
    parameters = "x: float = 0.0\nwanted = 'no'"
    notebook = here.notebook("failed.ipynb", parameters, "assert wanted == open('wanted.txt').read()")
    (here.place / "wanted.txt").write_text("no")
    here.sweep(notebook, parameters={"x": [0.0, 1.0], "wanted": ["no", "yes"]})
    assert sorted(run["state"] for run in here.runs("failed")) == ["completed"] * 2 + ["failed"] * 2
    (here.place / "wanted.txt").write_text("yes")
    how = {"resume": False, "retry_failed": True, "dry_run": False, "parameters": (), "over": (), "repeat": None}
    chosen = dict.fromkeys(("workers", "timeout", "memory", "share", "dask"))
    asked = of_options(100, here.place, None, name="failed", **how, **chosen)
    here.run(asked)
    assert [(run["state"], run["tries"]) for run in here.runs("failed")].count(("completed", 2)) == 2
    with pytest.raises(NotFound, match="SWEEP_NOT_FOUND"):
        here.run(of_options(100, here.place, None, name="other", **how, **chosen))
    for changed in ({"retry_failed": False}, {"parameters": ("x=1",)}, {"repeat": 2}):
        with pytest.raises(BadInput, match="BAD_SWEEP"):
            of_options(100, here.place, None, name="failed", **{**how, **changed}, **chosen)


def test_agents_of_a_run_whose_sweep_was_killed_end_also_if_it_is_not_resumed(here: SweepLab) -> None:
    about = {"notebook": "killed.ipynb", "notebook_sha256": "0" * 64, "specification": {"runs": 2}}
    sweep = here.call("start_sweep", name="killed", **about)["id"]
    agents = {}
    for number, project in ((1, "sweep killed"), (2, "Lab")):
        session = here.session(project, f"killed {number}")
        agents[project] = here.agent(session)
        run = here.call("start_run", name=f"killed {number}", sweep_id=sweep, session_id=session)["id"]
        here.call("end_run", run_id=run, state="lost")
    given.wait_until(lambda: agents["sweep killed"] not in here.running_agents())
    assert agents["Lab"] in here.running_agents()
    here.call("terminate_agent", agent_id=agents["Lab"])


def test_a_sweep_goes_over_personas_that_exist(here: SweepLab) -> None:
    notebook = here.notebook("people.ipynb", "persona = ''", "print(persona)")
    here.sweep(notebook, over={"persona": ("implementer", "reviewer")})
    for run, persona in zip(here.runs("people"), ("implementer", "reviewer"), strict=True):
        assert here.printed(run).strip() == persona
        assert here.call("get_run", run_id=run["id"])["environment"]["persona"] == persona
    for unknown in ("implementr", "nobody"):
        with pytest.raises(NotFound):
            here.sweep(notebook, {"name": "nobody"}, over={"persona": (unknown,)})


def test_a_resumed_sweep_repeats_nothing_that_finished(here: SweepLab) -> None:
    note = here.place / "executed.txt"
    notebook = here.notebook(
        "again.ipynb",
        "seed = 0",
        f"import pathlib\nwith open({str(note)!r}, 'a') as file: file.write(f'{{seed}}\\n')",
        f"assert seed != 2 or pathlib.Path({str(here.place / 'mended')!r}).exists()",
    )
    three = {"seed": [1, 2, 3]}
    here.sweep(notebook, parameters=three)
    assert sorted(note.read_text().split()) == ["1", "2", "3"]
    with pytest.raises(Conflict, match=r"^SWEEP_EXISTS: "):
        here.sweep(notebook, parameters=three)
    changed = r"^SWEEP_CHANGED: .*began with other values\. Named without a notebook and values, it goes on"
    with pytest.raises(Conflict, match=changed):
        here.sweep(notebook, parameters={"seed": [1, 2]}, resume=True)
    going_on = here.sweep(notebook, parameters=three, resume=True)
    assert isinstance(going_on, PartialFailure)
    assert "3 of 3: 2 completed, 1 failed" in going_on.text()
    assert going_on.note == "To run again what failed, repeat this with --retry-failed."
    assert sorted(note.read_text().split()) == ["1", "2", "3"]
    (here.place / "mended").touch()
    here.sweep(notebook, parameters=three, retry_failed=True)
    assert sorted(note.read_text().split()) == ["1", "2", "2", "3"]
    assert [(run["state"], run["tries"]) for run in here.runs("again")] == [("completed", n) for n in (1, 2, 1)]


def test_a_run_whose_notebook_cannot_be_saved_fails_and_can_be_retried(lab: SweepLab) -> None:
    """Its first try puts a file in the place of the directory."""
    notebook = lab.notebook(
        "unsaved.ipynb",
        "seed = 0",
        "import os, shutil\nplace = '.aiswarm/runs/unsaved'\nif os.environ['WORKBENCH_RUN'].endswith(':1'):\n"
        "    shutil.rmtree(place)\n    open(place, 'w').close()",
    )
    lab.sweep(notebook, parameters={"seed": [1]})
    [run] = lab.runs("unsaved")
    assert (run["state"], run["error_code"], run["output"]) == ("failed", "PROJECT_UNWRITABLE", None)
    (lab.place / ".aiswarm" / "runs" / "unsaved").unlink()
    lab.sweep(notebook, parameters={"seed": [1]}, retry_failed=True)
    [run] = lab.runs("unsaved")
    assert run["state"] == "completed"
    assert (lab.place / run["output"]).is_file()


def test_a_sweep_that_is_not_there_is_not_resumed_and_the_error_names_those_that_are(here: SweepLab) -> None:
    notebook = here.notebook("grid.ipynb", "seed = 0", "1")
    here.sweep(notebook, parameters={"seed": [1]})
    meant = r"^SWEEP_NOT_FOUND: There is no sweep gird to go on with\. Did you mean grid\? To begin it, "
    for how in ({"resume": True}, {"retry_failed": True}):
        with pytest.raises(NotFound, match=meant):
            here.sweep(notebook, {"name": "gird"}, parameters={"seed": [1]}, **how)
    with pytest.raises(NotFound, match=r"The newest are grid.*`workbench runs sweeps` lists them"):
        here.sweep(notebook, {"name": "another-one"}, parameters={"seed": [1]}, resume=True)
    assert not {"gird", "another-one"} & {sweep["name"] for sweep in here.call("list_sweeps")["sweeps"]}
    assert not (here.settings.runs / "gird").exists()


def test_a_changed_notebook_is_another_sweep_and_none_is_run_twice_at_once(here: SweepLab) -> None:
    here.sweep(here.notebook("edited.ipynb", "seed = 0", "1"), parameters={"seed": [1]})
    with only_one(here.settings, "edited"), pytest.raises(Conflict, match=r"^SWEEP_RUNNING: "):
        here.sweep(here.place / "edited.ipynb", parameters={"seed": [1]}, resume=True)
    with pytest.raises(Conflict, match="The notebook of the sweep edited changed"):
        here.sweep(here.notebook("edited.ipynb", "seed = 0", "2"), parameters={"seed": [1]}, resume=True)


def test_a_sweep_that_cannot_begin_starts_nothing(here: SweepLab) -> None:
    notebook = here.notebook("bare.ipynb", "seed = 0", "1")
    document, one = json.loads(notebook.read_text()), {"seed": [1]}
    with pytest.raises(BadInput, match="BAD_NAME"):
        here.sweep(notebook, {"name": ""}, parameters=one)
    notebook.write_text(json.dumps(document).replace("python3", "julia-9"))
    with pytest.raises(BadInput, match=r"^KERNEL_NOT_FOUND: "):
        here.sweep(notebook, parameters=one)
    notebook.write_text(json.dumps(document | {"metadata": {}}))
    with pytest.raises(BadInput, match=r"^BAD_NOTEBOOK: .*choose a kernel"):
        here.sweep(notebook, parameters=one)
    for text in ("no notebook", "{}", '{"cells": 1, "metadata": {}, "nbformat": 4}'):
        notebook.write_text(text)
        with pytest.raises(BadInput, match=r"^BAD_NOTEBOOK: .+\Z"):  # one line
            here.sweep(notebook)
    notebook.unlink()
    with pytest.raises(BadInput) as refused:
        here.sweep(notebook)
    assert str(refused.value) == (
        f"FILE_UNREADABLE: {notebook} cannot be read: No such file or directory. Choose another file."
    )
    assert here.call("list_sweeps", search="bare")["sweeps"] == []
