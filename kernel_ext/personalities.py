"""`wb.personalities`: the agents of the KOI network, and the profiles of this project's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from kernel_ext.definition_sections import Missing, SectionCaller
from kernel_ext.objects.mistakes import Suggests, field_read_only
from kernel_ext.objects.rows import shown_or_why
from kernel_ext.result import Result
from kernel_ext.wording import in_objects
from workbench.errors import NotFound
from workbench.present.tables import Table

PAGE = 500
LONGEST = 80
"""Characters of a value in a table."""
CONTEXT = 20
"""How many equal characters are shown before the first that differs."""
NO_DIFFERENCE: Mapping[str, Any] = {"added": [], "removed": [], "changed": [], "fields": []}


class Personalities(Suggests, Mapping[str, "NotebookPersonality"]):
    """The agents of the network by name. A cell shows them as a table."""

    def __init__(self, caller: SectionCaller) -> None:
        self._caller = caller

    def __getitem__(self, name: str) -> NotebookPersonality:
        """An agent.

        Raises:
            Missing: ``PERSONALITY_NOT_FOUND``.
        """
        personality = NotebookPersonality(self._caller, name)
        personality.require()
        return personality

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def publish(self, name: str, **options: Any) -> NotebookPersonality:
        """Publish the profile of an agent of this project, or change what it is made of.

        Args:
            options: arguments of the operation `publish_personality`: `agent_id`, `definition`, `version`, `traits`.

        Raises:
            WorkbenchError: what the operation raises.
        """
        self._caller.call("publish_personality", name=name, **options)
        return NotebookPersonality(self._caller, name)

    def search(self, text: str) -> Table:
        """The agents with a text in their name or in one of their traits."""
        return self._table(text)

    def _names(self) -> list[str]:
        """The names of all agents, and of this project's own that are not published yet."""
        names: list[str] = []
        cursor = None
        while True:
            page = self._caller.call("list_personalities", limit=PAGE, cursor=cursor)
            names += [personality["name"] for personality in page["personalities"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return names + [name for name in page["unpublished"] if name not in names]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def __repr__(self) -> str:
        return repr(shown_or_why(self._table))

    def _repr_html_(self) -> str:
        return shown_or_why(self._table).html()

    def _table(self, *search: str) -> Table:
        table: Table = self._caller.run(["personalities", "list", "--", *search])
        return table


class NotebookPersonality(Suggests):
    """An agent of the network. A cell shows its latest version: traits, tools, and where it comes from."""

    name: str

    def __init__(self, caller: SectionCaller, name: str) -> None:
        self._caller = caller
        vars(self)["name"] = name

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise field_read_only(self._label(), name, "Its method update_traits changes traits.")
        super().__setattr__(name, value)

    @property
    def info(self) -> Result:
        """Its latest version: profile, versions and provenance; see the operation `get_personality`.

        Raises:
            NotFound: ``PERSONALITY_NOT_FOUND``, also for a profile that is not published yet.
        """
        return self._caller.call("get_personality", name=self.name)

    @property
    def traits(self) -> dict[str, Any]:
        """The values of its traits that are no tools, by name."""
        return {trait["name"]: trait["value"] for trait in self._traits() if not trait["is_callable"]}

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Its tools by name: description and `input_schema`."""
        return {trait["name"]: trait for trait in self._traits() if trait["is_callable"]}

    @property
    def origin(self) -> dict[str, Any]:
        """Where it comes from: the nodes that own and sent it, its hash, when it was seen first and last."""
        provenance: dict[str, Any] = self.info["provenance"]
        return provenance

    @property
    def versions(self) -> list[str]:
        """Its versions, the latest first."""
        versions: list[str] = self.info["versions"]
        return versions

    @property
    def changes(self) -> Table:
        """How it has changed, newest first."""
        table: Table = self._caller.run(["personalities", "history", "--", self.name])
        return table

    def diff(self, before: str | None = None, after: str | None = None) -> Table:
        """What the last change has changed; or what differs between two versions.

        Args:
            after: None: the latest version.

        Raises:
            NotFound: ``PERSONALITY_NOT_FOUND``.
        """
        if before is not None:
            return _difference_table(self._difference(before, after))
        changes = self._caller.call("list_personality_changes", name=self.name, version=after, limit=1)["changes"]
        return _difference_table(changes[0]["difference"] if changes and changes[0]["difference"] else NO_DIFFERENCE)

    def update_traits(self, traits: Mapping[str, Any] | None = None, /, **more: Any) -> NotebookPersonality:
        """Change traits of an agent of this project, by name; None removes one, and all others stay.

        Raises:
            WorkbenchError: what the operation `update_traits` raises.
        """
        self._caller.call("update_traits", name=self.name, traits={**(traits or {}), **more})
        return self

    def withdraw(self) -> Result:
        """Withdraw the profile of an agent of this project: the network forgets it.

        Raises:
            WorkbenchError: what the operation `withdraw_personality` raises.
        """
        return self._caller.call("withdraw_personality", name=self.name)

    def require(self) -> None:
        """Check that it exists.

        Raises:
            Missing: ``PERSONALITY_NOT_FOUND``.
        """
        try:
            _ = self.info
        except NotFound as error:
            if self.name not in self._caller.call("list_personalities", limit=1)["unpublished"]:
                raise Missing(error.code, in_objects(error).message, **error.details) from None

    def _traits(self) -> list[dict[str, Any]]:
        try:
            traits: list[dict[str, Any]] = self.info["profile"]["traits"]
        except NotFound:
            traits = self._read_unpublished()["traits"]
        return traits

    def _read_unpublished(self) -> Result:
        """A profile of this project that is not published yet."""
        return self._caller.call("get_own_personality", name=self.name)

    def _difference(self, *versions: str | None) -> dict[str, Any]:
        """What differs between two versions."""
        # Imported here: the rules of KOI load its library.
        from workbench.rules.personalities.differences import difference as between
        from workbench.rules.personalities.profile import PersonalityProfile

        states = [self._caller.call("get_personality", name=self.name, version=version) for version in versions]
        profiles = [PersonalityProfile.model_validate(state["profile"]) for state in states]
        return between(*profiles).model_dump(mode="json")

    def __repr__(self) -> str:
        return str(self._describe())

    def _repr_html_(self) -> str:
        return str(self._describe()._repr_html_())

    def _describe(self) -> Table | Result:
        try:
            table: Table = self._caller.run(["personalities", "show", "--", self.name])
        except NotFound:
            return self._read_unpublished()
        return table


def _difference_table(difference: Mapping[str, Any]) -> Table:
    """What differs between two states of a profile, as a table."""
    rows = [[trait["name"], "added", "", _brief(trait["value"])] for trait in difference["added"]]
    rows += [[trait["name"], "removed", _brief(trait["value"]), ""] for trait in difference["removed"]]
    changed = [(trait["name"], field) for trait in difference["changed"] for field in trait["fields"]]
    changed += [("(profile)", field) for field in difference["fields"]]
    rows += [[name, field["name"], *beside(field["before"], field["after"])] for name, field in changed]
    return Table(["trait", "what", "before", "after"], rows, "Nothing differs.", difference)


def beside(before: Any, after: Any) -> tuple[str, str]:
    """Two values on one line each; long ones are cut to the section where they begin to differ."""
    lines = _line(before), _line(after)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*lines, strict=False)))
    start = max(0, common - CONTEXT) if max(map(len, lines)) > LONGEST else 0
    return _cut(lines[0], start), _cut(lines[1], start)


def _brief(value: Any) -> str:
    """A value on one line."""
    return _cut(_line(value))


def _line(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


def _cut(line: str, start: int = 0) -> str:
    """A line from a character on, cut to the length that a cell shows."""
    if start:
        line = f"…{line[start + 1 :]}"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
