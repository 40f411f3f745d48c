"""How many files name each operation by hand: `python -m tests.mentions` prints the medians and the worst.

Each such file is one more that a change of the operation may have to edit. Generated files do not count.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from statistics import median

from workbench.ops import collect
from workbench.services import SERVICES

ROOT = Path(__file__).parents[1]
GENERATED = re.compile(
    r"^docs/(reference|commands)\.md$|/static/|package-lock\.json$|\.(png|bundle)$|^tests/saved_project/"
)
WORST = 15


def mentions() -> dict[str, tuple[set[str], set[str]]]:
    """By operation: the files of the source and the documents that name it, and those of the tests."""
    names = collect(SERVICES)
    found: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in listed.splitlines():
        if GENERATED.search(file) or not (ROOT / file).is_file():
            continue
        words = set(re.findall(r"\w+", (ROOT / file).read_text("utf-8", errors="replace")))
        for name in names.keys() & words:
            found[name][file.startswith("tests/")].add(file)
    return dict(found)


def main() -> None:
    """Print the medians, and the operations that most files name."""
    found = mentions()
    for number, place in enumerate(("source and documents", "tests")):
        counts = {name: len(files[number]) for name, files in found.items()}
        print(f"{place}: median {median(counts.values()):g} files")
        for name, count in sorted(counts.items(), key=lambda item: -item[1])[:WORST]:
            print(f"  {count:3} {name}")


if __name__ == "__main__":
    main()
