"""How every script ends: one line for people, one JSON object for Workbench, an exit code."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Failed(Exception):
    """The work cannot be done; the message says what to do about it."""

    exit_code = 1


class TryAgain(Failed):
    """It may succeed when tried again with more effort."""

    exit_code = 75  # EX_TEMPFAIL in sysexits.h


@dataclass(frozen=True)
class Outcome:
    line: str
    figures: dict[str, Any]
    artifacts: Sequence[Path] = field(default=())


def run(work: Callable[[], Outcome]) -> None:
    try:
        outcome = work()
    except Failed as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    print(outcome.line)
    hand_over(outcome)


def hand_over(outcome: Outcome) -> None:
    """Write the outcome to the file named by WORKBENCH_RESULT, if it is set."""
    if path := os.environ.get("WORKBENCH_RESULT"):
        artifacts = [artifact.as_posix() for artifact in outcome.artifacts]
        message = {"result": outcome.figures, "artifacts": artifacts}
        Path(path).write_text(json.dumps(message, indent=2) + "\n", encoding="utf-8")
