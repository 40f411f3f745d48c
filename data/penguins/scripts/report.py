"""Put the findings together."""

from typing import Any

import _root  # noqa: F401
from penguins.results import RESULTS, Finding, Table, load, read_json, write_text
from penguins.script import Outcome, run

REPORT = RESULTS / "REPORT.md"
FINDINGS = ("islands", "bills", "mass")


def data_section(cleaning: dict[str, Any]) -> str:
    missing = {name: str(number) for name, number in cleaning["missing"].items() if number}
    table = Table(["Column", "Missing values"], [[f"`{n}`", m] for n, m in missing.items()])
    text = (
        f"The table has {cleaning['rows_kept']} penguins of "
        f"{len(cleaning['species_names'])} species; {cleaning['rows_complete']} of them have all "
        "four body measurements and a known sex. Missing values were left out where they matter, "
        "not filled in."
    )
    return f"## The data\n\n{text}\n\n{table.markdown()}"


def section(name: str, finding: Finding) -> str:
    picture = f"![{finding.title}]({name}.svg)"
    return f"## {finding.title}\n\n{finding.text}\n\n{picture}\n\n{finding.table.markdown()}"


def work() -> Outcome:
    findings = {name: load(name) for name in FINDINGS}
    cleaning = read_json(RESULTS / "cleaning.json", made_by="clean")
    sections = [
        "# The penguins of the Palmer Archipelago",
        data_section(cleaning),
        *(section(name, finding) for name, finding in findings.items()),
        "Data: Gorman, Williams & Fraser (2014), Horst, Hill & Gorman (2020); see the README.",
    ]
    write_text(REPORT, "\n\n".join(sections) + "\n")
    summary = {name: finding.text for name, finding in findings.items()}
    return Outcome(f"Wrote {REPORT} with {len(findings)} findings.", summary, [REPORT])


if __name__ == "__main__":
    run(work)
