"""Definitions on disk: directories that people, editors, git and several processes change."""

from workbench.definition_files.directory import Directory, Snapshot
from workbench.definition_files.draft import Draft
from workbench.definition_files.registry import Change, Listing, Registry

__all__ = ["Change", "Directory", "Draft", "Listing", "Registry", "Snapshot"]
