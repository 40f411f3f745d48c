"""The panel says what of a project is not used until the user trusts it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.desk_lab import OpenDesk, Project
from workbench.withheld import trust, withheld


def test_what_is_not_used_is_named_until_it_is_trusted(brisk: None, open_bare: OpenDesk, project: Project) -> None:
    state = project.path / ".aiswarm"
    (state / "profiles").mkdir()
    (state / "profiles" / "claude.yaml").write_text("summary: <b>x</b>\ncommand: [sh]\n")
    (state / "settings.toml").write_text('confinement = "off"\nintegration_gates = ["true"]\n')
    note = open_bare().get_by_role("note")
    expect(note).to_have_text(
        "Not used, because you have not trusted it: .aiswarm/settings.toml (confinement, integration_gates), "
        ".aiswarm/profiles/claude.yaml. workbench trust shows it."
    )
    trust(project.path, withheld(project.path))
    expect(note).to_be_hidden()
