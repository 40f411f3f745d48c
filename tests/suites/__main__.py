"""Runs the test suites of public projects outside and in a box, and compares them: `python -m tests.suites [NAME…]`.

No test runs it: it downloads their source archives, which are pinned, and what their tests need, and takes minutes.
Each becomes a repository with an environment of its own, `.venv`, where it is installed by `pip install -e`; then its
suite runs there as in a terminal, and in the box of a worktree. What differs is run again in both places. The exit
status is 1 if a test ends otherwise inside and is not among the suite's `listed`, or if one of those ends as outside.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.suites.pinned import SUITES, Suite

CONSTRAINTS = Path(__file__).with_name("constraints.txt")
WORKTREE = "suite"
REPORT = "report.xml"
SECONDS = 1_800
"""How long a suite may take, and how long preparing it."""
MISSING = "missing"


def run(command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program that must succeed, and return its output.

    Raises:
        CalledProcessError, TimeoutExpired.
    """
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS
    )
    if done.returncode:
        print(done.stdout[-4_000:])
        done.check_returncode()
    return done.stdout


class Project:
    """A suite's project: a repository with its files, its environment, and a worktree."""

    def __init__(self, suite: Suite, place: Path) -> None:
        self.suite = suite
        self.place = place
        self.root = place / suite.name  # tests of joblib fail in a directory with a dot in its name
        self.environment = {**os.environ, "WORKBENCH_CONFIG": str(place / "config"), "WORKBENCH_ENVIRONMENT": ".venv"}

    def prepare(self) -> None:
        """Download and unpack the archive, commit its files, install it, and create the worktree; once."""
        if (self.root / ".aiswarm" / "worktrees" / WORKTREE).exists():
            return
        requirements = self.place / "requirements.txt"
        requirements.write_text(f"{self.suite.name}=={self.suite.version} --hash=sha256:{self.suite.sha256}\n")
        only = ("--no-deps", "--no-binary", self.suite.name, "--require-hashes", "-r", str(requirements))
        run((sys.executable, "-m", "pip", "download", "--quiet", *only), self.place)
        (archive,) = self.place.glob("*.tar.gz")
        run(("tar", "-xzf", archive, "--no-same-owner"), self.place)
        (self.place / f"{self.suite.name}-{self.suite.version}").rename(self.root)
        identity = ("-c", "user.name=You", "-c", "user.email=you@example.org")
        run(("git", "init", "-q", "-b", "main"), self.root)
        (self.root / ".git" / "info" / "exclude").write_text(f".venv/\n.aiswarm/\n{REPORT}\n")
        run(("git", "add", "--all", "--force"), self.root)
        run(("git", *identity, "commit", "-q", "-m", f"{self.suite.name} {self.suite.version}"), self.root)
        run((sys.executable, "-m", "venv", ".venv"), self.root)
        install = (self.root / ".venv/bin/pip", "install", "--quiet", "--constraint", str(CONSTRAINTS))
        version = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": self.suite.version}  # the repository has no tags
        run((*install, "-e", self.suite.installed, *self.suite.needs), self.root, version)
        self.workbench("init", "--bare")
        self.workbench("worktrees", "create", WORKTREE)

    def workbench(self, *words: str) -> str:
        """Run a command of Workbench in the project."""
        return run(self._workbench(*words), self.root, self.environment)

    def _workbench(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "workbench.cli", "--project", str(self.root), *words]

    def outside(self, *tests: str) -> dict[str, str]:
        """How the tests end as in a terminal."""
        path = f"{self.root / '.venv/bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(self.root / ".venv")}
        return self._outcomes([], self.root, environment, "outside", tests)

    def inside(self, *tests: str) -> dict[str, str]:
        """How the tests end in the box of the worktree."""
        place = self.root / ".aiswarm" / "worktrees" / WORKTREE
        before = self._workbench("worktrees", "run", WORKTREE, "--")
        return self._outcomes(before, place, self.environment, "inside", tests)

    def _outcomes(
        self, before: Sequence[str], report_in: Path, environment: Mapping[str, str], name: str, tests: Sequence[str]
    ) -> dict[str, str]:
        report = report_in / REPORT
        report.unlink(missing_ok=True)
        pytest = [".venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={REPORT}"]
        with (self.place / f"{name}.log").open("a") as log:
            subprocess.run(
                [*before, *pytest, *self.suite.arguments, *tests],
                cwd=self.root,
                env={**environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
            )
        return outcomes(report)


def outcomes(report: Path) -> dict[str, str]:
    """How each test of a report has ended."""
    cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
    return {f"{case.get('classname')}::{case.get('name')}": _outcome(case) for case in cases}


def _outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


def differences(outside: Mapping[str, str], inside: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The tests that end otherwise inside: how outside, and how inside."""
    pairs = {name: (outside.get(name, MISSING), inside.get(name, MISSING)) for name in (*outside, *inside)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def count(ended: Mapping[str, str]) -> str:
    """How many ended how."""
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(Counter(ended.values()).items())) or "none"


def compare(suite: Suite, place: Path) -> bool:
    """Run a suite outside and inside; whether no test differs but those that it lists."""
    project = Project(suite, place)
    project.prepare()
    outside, inside = project.outside(), project.inside()
    differing = differences(outside, inside)
    print(f"{suite.name} {suite.version}\n  outside: {count(outside)}\n  inside:  {count(inside)}")
    unlisted = {name: pair for name, pair in differing.items() if not is_listed(name, suite.listed)}
    if unlisted:  # a test that fails now and then differs by chance
        again = differences(project.outside(), project.inside())
        unlisted = {name: pair for name, pair in unlisted.items() if name in again}
    needless = [name for name in suite.listed if not any(fnmatch.fnmatchcase(test, name) for test in differing)]
    print(f"  {len(differing) - len(unlisted)} others are listed, or failed by chance")
    for name, (before, within) in unlisted.items():
        print(f"  DIFFERS {name}: {before} outside, {within} inside")
    for name in needless:
        print(f"  ends inside as outside, but is listed: {name}")
    return bool(outside) and not unlisted and not needless


def is_listed(name: str, patterns: Iterable[str]) -> bool:
    """Whether a test is among those that a suite lists."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def main() -> int:
    """Compare the suites that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.suites")
    parser.add_argument("names", nargs="*", choices=[*SUITES, []], metavar="NAME")
    parser.add_argument("--place", type=Path, help="a directory for all files, which stay; else they are removed")
    chosen = parser.parse_args()
    hold = chosen.names or list(SUITES)
    with tempfile.TemporaryDirectory(prefix="workbench-suites-") as directory:
        results = []
        for name in hold:
            place = (chosen.place or Path(directory)).resolve() / name
            place.mkdir(parents=True, exist_ok=True)
            results.append(compare(SUITES[name], place))
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
