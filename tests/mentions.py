"""How many files name each operation by hand: `python -m tests.mentions` prints the medians and the worst.

Each such file is one more that a change of the operation may have to edit. Generated files and parts do not count. Many
tests call an operation only to have something to look at; a file tests it if it is among those of the operation's
service, or if none of those names it.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from docs.generator.pages import MARK
from workbench.ops import Op, collect
from workbench.services import SERVICES

ROOT = Path(__file__).parents[1]
GENERATED = re.compile(
    r"^docs/(reference|commands)\.md$|/static/|^workbench/present/declared\.json$|package-lock\.json$|\.(png|bundle)$"
    r"|^tests/saved_project/|^tests/ops/permissions\.txt$"
)
WORST = 15


def naming_files(operations: Mapping[str, Op]) -> dict[str, set[str]]:
    """By operation: the files that name it."""
    files_of: dict[str, set[str]] = defaultdict(set)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in tracked.splitlines():
        if GENERATED.search(file) or not (ROOT / file).is_file():
            continue
        written = (ROOT / file).read_text("utf-8", errors="replace").partition(MARK)[0]
        for name in operations.keys() & set(re.findall(r"\w+", written)):
            files_of[name].add(file)
    return dict(files_of)


def testing_files(operation: Op, files: set[str]) -> set[str]:
    """Those of the tests that test an operation."""
    service = operation.fn.__module__.split(".")[2]
    places = (f"tests/services/{service}/", f"tests/services/test_{service}.py")
    return {file for file in files if file.startswith(places)} or files


def main() -> None:
    """Print the medians, and the operations that most files name."""
    operations = collect(SERVICES)
    sources, tests, testing = {}, {}, {}
    for name, files in naming_files(operations).items():
        sources[name] = {file for file in files if not file.startswith("tests/")}
        tests[name] = files - sources[name]
        testing[name] = testing_files(operations[name], tests[name])
    for place, files_of in (("source and documents", sources), ("tests", tests), ("tests, by what they test", testing)):
        counts = {name: len(files) for name, files in files_of.items()}
        print(f"{place}: median {median(counts.values()):g} files")
        for name, count in sorted(counts.items(), key=lambda item: -item[1])[:WORST]:
            print(f"  {count:3} {name}")


if __name__ == "__main__":
    main()
