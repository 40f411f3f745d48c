"""Definitions on disk: directories that people, editors, git and several processes change."""

from workbench.definition_files.directory import DefinitionDirectory, Snapshot
from workbench.definition_files.draft import RegistryDraft
from workbench.definition_files.registry import DefinitionChange, DefinitionListing, Registry

__all__ = ["DefinitionChange", "DefinitionDirectory", "DefinitionListing", "Registry", "RegistryDraft", "Snapshot"]
