"""Writes every generated file."""

from __future__ import annotations

from docs.generator import declared_commands
from workbench.present import declared


def main() -> None:
    """Write the declared commands, then the pages, which describe the commands that these make."""
    declared.FILE.write_text(declared_commands.data(), "utf-8")
    from docs.generator.pages import PAGES

    for path, text in PAGES.items():
        path.write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
