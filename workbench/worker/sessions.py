"""The conversations of programs, kept from one attempt at a task to the next, which continues them.

Programs keep a conversation in a file of their home, which is the scratch directory of an attempt and ends with it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.drivers import DRIVERS, ProgramStream, ProgramUsage
from workbench.rules.failures import FailureKind

RECORD, CONVERSATION = "session.json", "conversation"
DAY = 86_400.0
END_CHARS = 1_000_000
"""Characters at the end of a conversation in which a limit is looked for."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptSession:
    """The conversation of an earlier attempt, in its place again.

    Args:
        id: the program's own.
        file: where the program finds it.
        usage: what was used up to then.
    """

    id: str
    file: Path
    usage: ProgramUsage


@dataclass(frozen=True, slots=True)
class SessionStore:
    """Where the conversation about one task is kept.

    Args:
        place: its directory; it need not exist.
        program: whose conversation it is.
        max_bytes: of a conversation that is kept.
    """

    place: Path
    program: str
    max_bytes: int

    def take(self, home: Path) -> KeptSession | None:
        """Put the conversation into the home of the program. It is kept no longer: if it cannot be continued, the
        attempt after the next begins another."""
        try:
            record = json.loads((self.place / RECORD).read_text("utf-8"))
            if record["program"] != self.program:
                return None
            file = home / record["path"]
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(self.place / CONVERSATION, file)
            return KeptSession(record["session"], file, ProgramUsage(**record["usage"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            if not isinstance(error, FileNotFoundError):
                log.warning("the conversation of the last attempt cannot be continued: %s", error)
            return None
        finally:
            self.forget()

    def keep(self, home: Path, stream: ProgramStream, masked: Callable[[str], str]) -> None:
        """Keep the conversation of a run that has ended, unless it is too long for its model. Nothing of the run runs.

        Args:
            masked: removes secrets from a line.
        """
        if stream.session is None or (stream.trouble and stream.trouble.kind is FailureKind.CONTEXT):
            return
        try:
            file = _conversation(home, self.program, stream.session)
            if file is None or file.stat().st_size > self.max_bytes:
                return
            if stream.trouble and stream.trouble.kind is FailureKind.LIMIT and stream.trouble.until is None:
                end = file.read_text("utf-8", "replace")[-END_CHARS:]
                stream.note_trouble(FailureKind.LIMIT, "", DRIVERS[self.program].limit_of_session(end))
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            copy = self.place / CONVERSATION
            copy.touch(mode=0o600)
            with file.open(encoding="utf-8", errors="replace") as lines, copy.open("w", encoding="utf-8") as kept:
                kept.writelines(masked(line) for line in lines)
            record = {"program": self.program, "session": stream.session, "path": str(file.relative_to(home.resolve()))}
            (self.place / RECORD).write_text(json.dumps(record | {"usage": asdict(stream.usage)}), "utf-8")
        except (OSError, ValueError) as error:
            log.warning("the conversation of the attempt cannot be kept: %s", error)
            self.forget()

    def forget(self) -> None:
        """Keep nothing."""
        shutil.rmtree(self.place, ignore_errors=True)


def forget_before(directory: Path, at: float) -> None:
    """Forget the conversations in a directory that were kept before a time, seconds since the epoch. Blocks."""
    for place in directory.glob("*"):
        with suppress(FileNotFoundError):  # its task has ended meanwhile
            if place.stat().st_mtime < at:
                shutil.rmtree(place, ignore_errors=True)


def under_way(home: Path, program: str, stream: ProgramStream) -> KeptSession | None:
    """The conversation of a run that has ended, where the program's next run finds it; None: there is none."""
    file = _conversation(home, program, stream.session) if stream.session else None
    return KeptSession(stream.session or "", file, stream.usage) if file else None


def _conversation(home: Path, program: str, session: str) -> Path | None:
    """The file that has a conversation, if it is an ordinary one below the home, which the program wrote."""
    if not session.replace("-", "").replace("_", "").isalnum() or len(session) > 100:
        return None
    files = [file.resolve() for file in home.glob(DRIVERS[program].session_files(session))]
    own = [file for file in files if file.is_file() and file.is_relative_to(home.resolve())]
    return max(own, key=os.path.getmtime, default=None)
