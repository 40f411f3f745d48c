"""Personas, the kinds of work that agents take: built-in ones, overridden by the project's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from workbench.errors import BadInput, NotFound
from workbench.model import SECOND, Json, Level, Micros, Role, Wire
from workbench.ops import Columns, Command, Ctx, op
from workbench.ops.parameters import PersonaId
from workbench.rules.persona import SUFFIX, PersonaText, check_id, parse
from workbench.rules.secrets.executed import warnings_about
from workbench.rules.workplace import opening
from workbench.state.settings import Settings, shipped
from workbench.store.base import Reader, Row, Store, Tx
from workbench.store.queries import beside
from workbench.system import atomic_file

SQL = beside(__file__)


def _read_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


class PersonaInfo(Wire):
    """A persona with the instructions for its agents, and the keys of a workplace that it states."""

    id: str
    name: str
    role: Role
    definition: str
    sha256: str
    source: str
    lease_us: int | None = Field(exclude=True, default=None)
    updated_at: Micros
    workplace: Annotated[dict[str, Json], BeforeValidator(lambda value: _read_json(value) or {})] = {}
    check: Annotated[Json, BeforeValidator(_read_json)] = Field(None, validation_alias="check_stated")
    budget: Annotated[Json, BeforeValidator(_read_json)] = None
    needs: Annotated[Json, BeforeValidator(_read_json)] = None

    @property
    def lease_seconds(self) -> float | None:
        """How long a lease of its tasks lasts without a heartbeat; None: the setting applies."""
        return None if self.lease_us is None else self.lease_us / SECOND


class PersonaSummary(Wire):
    """A persona without its text."""

    id: str
    name: str
    role: Role


class PersonaVersion(Wire):
    """A current or former text of a persona."""

    sha256: str
    name: str
    role: Role
    definition: str
    source: str
    saved_by: str
    saved_at: Micros


class PersonaVersions(Wire):
    """The versions of one persona, newest first."""

    SHOWN: ClassVar = Columns(
        "versions", "saved_at=saved saved_by=by source name role sha256", "There are no versions."
    )

    versions: list[PersonaVersion]


class PersonaPage(Wire):
    """Personas by id."""

    SHOWN: ClassVar = Columns("personas", "id name role", "There are no personas.")

    personas: list[PersonaSummary]


class SavedPersona(PersonaInfo):
    """A persona that was saved. `warnings` are about secrets in its text, which stay in it: its agents are sent it."""

    warnings: list[str]


@op(allow=Level.READ, reads=True, command=Command("personas list"), refreshed_by="persona")
async def get_personas(ctx: Ctx) -> PersonaPage:
    """List the personas."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list))
    return PersonaPage(personas=[PersonaSummary(id=r["id"], name=r["name"], role=r["role"]) for r in rows])


@op(allow=Level.READ, reads=True, command=Command("personas show PERSONA_ID", prints="{definition}"))
async def get_persona(ctx: Ctx, persona_id: PersonaId) -> PersonaInfo:
    """Get a persona with the instructions for its agents."""
    return await ctx.read(lambda tx: require_persona(tx, persona_id))


@op(allow=Level.READ, reads=True, tool=False, command=Command("personas versions PERSONA_ID"))
async def list_persona_versions(ctx: Ctx, persona_id: PersonaId) -> PersonaVersions:
    """List the versions of a persona, newest first, with their SHA-256."""

    def question(tx: Reader) -> list[Row]:
        return tx.all(SQL.versions, id=require_persona(tx, persona_id).id)

    return PersonaVersions(versions=[PersonaVersion(**row) for row in await ctx.read(question)])


@op(allow=Level.OPERATOR, command="personas save")
async def save_persona(
    ctx: Ctx,
    persona_id: Annotated[str, Field(description="Its id; a built-in persona with this id is overridden.")],
    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200_000,
            description="Markdown; front matter may have name, role (worker or planner), lease_seconds, check, budget, "
            "needs, and keys of a workplace.",
        ),
    ],
) -> SavedPersona:
    """Save a persona of this project as `.aiswarm/personas/<id>.md`. Its agents get the text from now on."""
    persona_text = parse(check_id(persona_id), text)

    def change(tx: Tx) -> SavedPersona:
        row = tx.one(SQL.get, id=persona_text.id)
        if row is None or row["sha256"] != persona_text.sha256:
            _save(tx, persona_text, "project")
        atomic_file.replace(ctx.settings.home / "personas" / f"{persona_text.id}.md", text)
        persona = require_persona(tx, persona_text.id)
        return SavedPersona.model_construct(**dict(persona), warnings=_warnings(ctx, persona))

    return await ctx.write(change)


def _warnings(ctx: Ctx, persona: PersonaInfo) -> list[str]:
    warnings = warnings_about("definition", persona.definition)
    if untrusted := sorted(opening(persona.workplace)):
        names = ", ".join(untrusted)
        warnings.append(f"Its workplace ({names}) is not used until you trust it: `workbench trust` shows it.")
    return warnings


def find_persona(tx: Reader, persona_id: str) -> PersonaInfo | None:
    """A persona, if it exists; ids are case-insensitive."""
    row = tx.one(SQL.get, id=persona_id.lower())
    return PersonaInfo(**row) if row else None


def require_persona(tx: Reader, persona_id: str) -> PersonaInfo:
    """A persona that exists.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``.
    """
    if persona := find_persona(tx, persona_id):
        return persona
    known = ", ".join(row["id"] for row in tx.all(SQL.list))
    raise NotFound("PERSONA_NOT_FOUND", f"There is no persona {persona_id!r}. Available: {known}.")


async def sync(store: Store, settings: Settings) -> None:
    """Update the table from the files; the project's override the built-in ones.

    Raises:
        BadInput: ``PERSONA_INVALID`` names the file.
    """
    texts: dict[str, tuple[PersonaText, str]] = {}
    for directory, source in ((shipped("data", "personas"), "built-in"), (settings.home / "personas", "project")):
        for text in _files(directory):
            texts[text.id] = (text, source)

    def change(tx: Tx) -> None:
        hashes = {row["id"]: row["sha256"] for row in tx.all(SQL.list)}
        for text, source in texts.values():
            if hashes.get(text.id) != text.sha256:
                _save(tx, text, source)

    await store.write(change)


def _save(tx: Tx, text: PersonaText, source: str) -> None:
    lease = None if text.lease_seconds is None else round(text.lease_seconds * SECOND)
    values = {"id": text.id, "name": text.name, "role": text.role, "sha256": text.sha256}
    values |= {"definition": text.definition, "source": source}
    workplace = json.dumps(text.workplace) if text.workplace else None
    check = json.dumps(text.check) if text.check else None
    budget = json.dumps(text.budget) if text.budget else None
    needs = None if text.needs is None else json.dumps(text.needs, sort_keys=True)
    stated = {"check": check, "budget": budget, "needs": needs}
    tx.run(SQL.save, values, lease_us=lease, workplace=workplace, now=tx.now, **stated)
    tx.run(SQL.keep_version, values, by=tx.actor, now=tx.now)
    tx.emit("persona.saved", f"persona:{text.id}", sha256=text.sha256, source=source)


def _files(directory: Path) -> list[PersonaText]:
    """The personas of a directory. Of two files for one persona, `<id>.md`, which `save_persona` writes, comes last."""
    in_order = sorted(directory.glob("*.md"), key=lambda path: (not path.stem.lower().endswith(SUFFIX), path.name))
    return [_read(path) for path in in_order]


def _read(path: Path) -> PersonaText:
    try:
        return parse(path.stem, path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput("PERSONA_INVALID", f"Persona {path.stem}: {path} is not UTF-8 text: {error}.") from None
    except BadInput as error:
        raise BadInput(error.code, f"{error.message} Correct or remove {path}.", path=str(path)) from None
