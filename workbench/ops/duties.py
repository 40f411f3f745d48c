"""What services do besides their operations: they mark functions, and `workbench.app` collects these.

`duty` is periodic work, `prepares` comes before all else in a project that is opened, `recovers` before its servers
run, `repairs` before each exclusive use of the repository. `on_event` and `on_foreign` hear of what happens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from workbench.ops.context import Ctx
from workbench.ops.operation import functions_of

if TYPE_CHECKING:
    from workbench.model import FeedEvent
    from workbench.state.settings import Settings

LONGEST_PAUSE_SECONDS = 10.0
SPACING_SECONDS = 0.25

Work = Callable[[Ctx], Awaitable[float | None]]
Seconds = float | Callable[["Settings"], float]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Duty:
    """Periodic work.

    Args:
        name: what it is, for the log.
        seconds: the pause before each run, at least.
        share: how much of the time it may take at most, unless that makes a pause longer than `LONGEST_PAUSE_SECONDS`.
        perform: does the work once; it may return in how many seconds it is to run again, if that is sooner.
        serving: run it only while the servers run.
        once: it is done once in a project, by the server whose turn it is; otherwise each server does what is of its
            own machine, or what does no harm if others do it, too.
        wakes: run it also after events, at most every `SPACING_SECONDS`: what it does follows from what is stored.
    """

    name: str
    seconds: float
    perform: Work
    serving: bool = True
    share: float = 1.0
    wakes: bool = False
    once: bool = False

    def pause(self, took: float, again: float | None = None) -> float:
        """Seconds until the next run, after one that took some seconds and asked for another."""
        seconds = self.seconds if again is None else again
        return max(seconds, min(took / self.share - took, LONGEST_PAUSE_SECONDS))


class DutyRole(Enum):
    """What a marked function is called for."""

    DUTY = auto()
    PREPARES = auto()
    RECOVERS = auto()
    REPAIRS = auto()
    REFRESHES_APPROVALS = auto()
    ON_EVENT = auto()
    ON_FOREIGN = auto()


class MarkedFunction(NamedTuple):
    """One role of a function, and what was said about it."""

    role: DutyRole
    fn: Callable[..., Any]
    about: Any = None


def _marking(role: DutyRole, about: Any = None) -> Callable[[F], F]:
    def mark(fn: F) -> F:
        fn.marks = (*getattr(fn, "marks", ()), MarkedFunction(role, fn, about))  # type: ignore[attr-defined]
        return fn

    return mark


def duty(
    name: str, seconds: Seconds, *, serving: bool = True, share: float = 1.0, wakes: bool = False, once: bool = False
) -> Callable[[F], F]:
    """Perform `(ctx)` periodically; see `Duty`. The pause may depend on the settings."""
    return _marking(DutyRole.DUTY, (name, seconds, serving, share, wakes, once))


def on_event(*kinds: str) -> Callable[[F], F]:
    """Call `(ctx, event)` for each event of these kinds that becomes visible."""
    return _marking(DutyRole.ON_EVENT, kinds)


prepares = _marking(DutyRole.PREPARES)
"""Run `(ctx)` once when the project is opened, before anything else."""
recovers = _marking(DutyRole.RECOVERS)
"""Run `(ctx)` before the servers run: it cleans up what a crash left."""
repairs = _marking(DutyRole.REPAIRS)
"""Run `(ctx, repository)` before each exclusive use of the repository: it finishes or undoes what a crash left."""
refreshes_approvals = _marking(DutyRole.REFRESHES_APPROVALS)
"""Run `(ctx)` before pending approvals are shown: it brings them up to date, and logs its failures."""
on_foreign = _marking(DutyRole.ON_FOREIGN)
"""Call `(ctx, events)` for what other processes have changed."""


@dataclass(frozen=True)
class Duties:
    """What some services have marked, in the order in which they are listed."""

    marks: Sequence[MarkedFunction]

    @classmethod
    def of(cls, services: Iterable[ModuleType]) -> Duties:
        """Collect the marks of services."""
        return cls([mark for fn in functions_of(services) for mark in getattr(fn, "marks", ())])

    def all(self, role: DutyRole) -> list[Callable[..., Any]]:
        """The functions in a role."""
        return [mark.fn for mark in self.marks if mark.role is role]

    def periodic(self, settings: Settings) -> list[Duty]:
        """The duties of a project."""
        about = [(mark.fn, *mark.about) for mark in self.marks if mark.role is DutyRole.DUTY]
        return [
            Duty(name, seconds(settings) if callable(seconds) else seconds, fn, serving, share, wakes, once)
            for fn, name, seconds, serving, share, wakes, once in about
        ]

    def events(self) -> list[tuple[Callable[[Ctx, FeedEvent], None], Sequence[str]]]:
        """What hears of events, and their kinds."""
        return [(mark.fn, mark.about) for mark in self.marks if mark.role is DutyRole.ON_EVENT]
