"""Definitions on disk: directories that people, editors, git and several processes change."""

from workbench.definitions.directory import Directory, Snapshot
from workbench.definitions.draft import Draft
from workbench.definitions.registry import Change, Listing, Registry

__all__ = ["Change", "Directory", "Draft", "Listing", "Registry", "Snapshot"]
