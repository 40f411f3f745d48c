"""Every operation on runs finds a run by its id or its name, in the same way."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.services.runs.conftest import Lab
from workbench.errors import BadInput, NotFound

pytestmark = pytest.mark.anyio

BY_REF: dict[str, dict[str, Any]] = {
    "get_run": {},
    "get_run_series": {},
    "get_run_artifact": {"name": "plot.txt"},
    "record_metrics": {"metrics": {"loss": 1}},
    "add_run_artifact": {"path": "plot.txt"},
    "update_run": {"notes": "It worked."},
    "archive_run": {},
    "restore_run": {},
    "end_run": {},
}


@pytest.fixture
async def named(lab: Lab) -> int:
    """A completed run with an artifact, which alone has its name."""
    (lab.workbench.settings.project / "plot.txt").write_text("plotted")
    run = await lab.run("baseline", loss=0.5)
    await lab.call("add_run_artifact", run_id=run, path="plot.txt")
    return run


async def test_an_operation_takes_the_id_of_a_run_or_its_name(lab: Lab, named: int) -> None:
    for operation, arguments in BY_REF.items():
        for ref in (named, str(named), "baseline"):
            made = await lab.call(operation, run_id=ref, **arguments)
            assert (operation, made.get("id", made.get("run_id", named))) == (operation, named)


async def test_an_operation_refuses_a_name_that_several_or_no_runs_have(lab: Lab, named: int) -> None:
    twin = await lab.run("baseline")
    for operation, arguments in BY_REF.items():
        ambiguous = await given.refusal(lab.call(operation, run_id="baseline", **arguments))
        assert (operation, ambiguous.code) == (operation, "AMBIGUOUS_NAME")
        assert ambiguous.details["candidates"] == [twin, named]
        unknown = await given.refusal(lab.call(operation, run_id="nobody", **arguments))
        assert (operation, unknown.code) == (operation, "RUN_NOT_FOUND")


async def test_digits_are_the_id_of_a_run_if_there_is_one_and_a_name_otherwise(lab: Lab, named: int) -> None:
    digits = await lab.run(str(named))
    await lab.call("update_run", run_id=str(named), notes="by id")
    await lab.call("update_run", run_id=digits, name="777")
    await lab.call("update_run", run_id="777", notes="by name")
    assert [(await lab.call("get_run", run_id=run))["notes"] for run in (named, digits)] == ["by id", "by name"]
    with pytest.raises(NotFound, match="RUN_NOT_FOUND"):
        await lab.call("get_run", run_id=777)
    compared = await lab.call("compare_runs", run_ids=["777", named])
    assert [run["id"] for run in compared["runs"]] == [digits, named]
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await lab.call("compare_runs", run_ids=["baseline", named])
