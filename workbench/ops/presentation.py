"""How an operation is shown: the commands that run it, its REST endpoint, and the columns of what it lists. All data.

`python -m docs.generator` writes it, with what the schemas say, into `workbench/present/declared.json`, which
`workbench.cli.operations.declared` makes commands of: the command line starts without the services.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Command:
    """A command that is one call of an operation.

    Without `says` and `prints` it shows the table of the result, whose model has `Columns` as ``SHOWN``, or what the
    command line has as the view of that model.

    Args:
        words: how it is typed: ``koi join [URL]``. `TASK` is the parameter `task`, or the first that has it as a word,
            such as `task_id` or `taskName`; one that may be null takes `none`, a choice `default`. An object is typed
            as pairs: ``KEY=VALUE``.
        says: a sentence with fields of the result and of the arguments. `{changed}` names the options that were given;
            then at least one has to be.
        options: the parameters that are options; None: all others that are text, numbers or flags.
        names: the parameters of the words and options that are called differently; ``own/others`` are the two words
            of a flag.
        prints: a text to copy, with fields as in `says`.
        asks: what is done besides, with fields of the arguments; the user is asked first, or gives `--yes`.
        offers: the completion of a parameter, in `workbench.cli.completion.offers`, if its name does not tell.
        fixed: the arguments of every call.
        help: what it does, if the operation's own words are about more.
        also: other words for it.
    """

    words: str
    says: str = ""
    options: tuple[str, ...] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    prints: str = ""
    asks: str = ""
    offers: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    help: str = ""
    also: str = ""

    @property
    def typed(self) -> str:
        """The words that are typed as they are; `list` may be left out."""
        return " ".join(word for word in self.words.split() if word.islower())


@dataclass(frozen=True)
class RestRoute:
    """The REST endpoint of an operation: one method of one path; see `workbench.shells.http.rest`.

    Args:
        path: with the names of arguments in braces.
        rows: the field with the list, if the result is a page of one.
        body: the argument that is the whole body; None: the body's fields are the arguments.
        enveloped: whether the answer below ``/api`` is an envelope; a specification wants the result alone of others.
    """

    method: str
    path: str
    rows: str | None = None
    body: str | None = None
    enveloped: bool = True


@dataclass(frozen=True)
class Columns:
    """The columns of a list.

    Args:
        rows: the field of the result that has the rows.
        fields: the fields of a row that are shown, as in ``id name=project parent=spawned_by``: a heading other than
            the field's name follows it.
        empty: shown if there are no rows.
        sparse: the fields that are left out if no row has a value.
    """

    rows: str
    fields: str
    empty: str
    sparse: str = ""

    def headings(self) -> dict[str, str]:
        """The heading of each field."""
        named = (one.partition("=") for one in self.fields.split())
        return {name: (head or name).replace("_", " ") for name, _, head in named}
