"""Personas: what kind of work an agent takes. The built-in ones, overridden by the project's files."""

from __future__ import annotations

from pathlib import Path

from workbench.errors import BadInput, NotFound
from workbench.model import Level, Micros, Role, Wire
from workbench.ops import Ctx, op
from workbench.rules.persona import PersonaText, parse
from workbench.settings import Settings, shipped
from workbench.store.base import Reader, Store, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


class Persona(Wire):
    """A persona, with the text its agents are told."""

    id: str
    name: str
    role: Role
    definition: str
    sha256: str
    source: str
    updated_at: Micros


class PersonaSummary(Wire):
    """A persona without its text."""

    id: str
    name: str
    role: Role


class Personas(Wire):
    """Personas by id."""

    personas: list[PersonaSummary]


@op(allow=Level.READ, reads=True)
async def get_personas(ctx: Ctx) -> Personas:
    """The kinds of work agents take."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list))
    return Personas(personas=[PersonaSummary(id=r["id"], name=r["name"], role=r["role"]) for r in rows])


@op(allow=Level.READ, reads=True)
async def get_persona(ctx: Ctx, persona_id: str) -> Persona:
    """One persona, with the text its agents are told."""
    return await ctx.read(lambda tx: require_persona(tx, persona_id))


def require_persona(tx: Reader, persona_id: str) -> Persona:
    """A persona that exists; ids are case-insensitive.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``.
    """
    row = tx.one(SQL.get, id=persona_id.lower())
    if row is None:
        known = ", ".join(r["id"] for r in tx.all(SQL.list))
        raise NotFound("PERSONA_NOT_FOUND", f"There is no persona {persona_id!r}. There are: {known}.")
    return Persona(**row)


async def sync(store: Store, settings: Settings) -> None:
    """Bring the table up to date with the files, built-in ones first, the project's over them.

    Raises:
        BadInput: ``PERSONA_INVALID`` names the file's id.
    """
    texts: dict[str, tuple[PersonaText, str]] = {}
    for directory, source in ((shipped("data", "personas"), "built-in"), (settings.home / "personas", "project")):
        for text in _files(directory):
            texts[text.id] = (text, source)

    def change(tx: Tx) -> None:
        known = {row["id"]: row["sha256"] for row in tx.all(SQL.list)}
        for text, source in texts.values():
            if known.get(text.id) != text.sha256:
                _save(tx, text, source)

    await store.write(change)


def _save(tx: Tx, text: PersonaText, source: str) -> None:
    values = {"id": text.id, "name": text.name, "role": text.role, "sha256": text.sha256}
    tx.run(SQL.save, values | {"definition": text.definition, "source": source, "now": tx.now})
    tx.emit("persona.saved", f"persona:{text.id}", sha256=text.sha256, source=source)


def _files(directory: Path) -> list[PersonaText]:
    return [parse(path.stem, _text(path)) for path in sorted(directory.glob("*.md"))]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("PERSONA_INVALID", f"Persona {path.stem}: it is not UTF-8 text: {error}.") from None
