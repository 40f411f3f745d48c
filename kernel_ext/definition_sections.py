"""The sections of a definition as mappings, for notebooks: reading and changing them calls operations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any, Protocol

from kernel_ext.result import Result
from workbench.errors import BadInput, NotFound
from workbench.present.inert import inert
from workbench.present.tables import Table

Write = Callable[[Any], None]
_CHANGES = {
    dict: ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"),
    list: (
        *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "extend", "insert", "pop", "remove"),
        *("clear", "sort", "reverse"),
    ),
}


class SectionCaller(Protocol):
    """Makes calls and runs commands as the operator: the session of the notebook."""

    def call(self, name: str, /, **arguments: Any) -> Result:
        """Run an operation."""
        ...

    def run(self, words: list[str], /) -> Any:
        """Run a command of `%workbench`."""
        ...


class Missing(NotFound, KeyError):
    """Nothing has this key. It is a `KeyError`, so that `in` and `get` work."""

    def __str__(self) -> str:
        """See `WorkbenchError`; a `KeyError` would quote it."""
        return inert(f"{self.code}: {self.message}")


class Section(MutableMapping[str, Any]):
    """A section of one definition.

    Args:
        noun: what its keys name.
        command: the words after `%workbench define` that show it.
    """

    def __init__(self, caller: SectionCaller, target: str, noun: str, *command: str) -> None:
        self._caller = caller
        self._target = target
        self._noun = noun
        self._command = command

    @abstractmethod
    def _all(self) -> Mapping[str, Any]:
        """The whole section."""

    def __getitem__(self, key: str) -> Any:
        """A value. To change it in place, as in ``rules["cite"]["text"] = …``, writes it.

        Raises:
            Missing: ``NOT_FOUND``.
        """
        section = self._all()
        if key not in section:
            keys = ", ".join(section) or "none"
            raise Missing("NOT_FOUND", f"There is no {self._noun} {key!r}. Its {self._noun}s: {keys}.")
        return live(section[key], partial(self._rewrite, key, section[key]))

    def _rewrite(self, key: str, before: Any, value: Any) -> None:
        """Write a value that was changed in place."""
        self[key] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _call(self, name: str, **arguments: Any) -> Result:
        return self._caller.call(name, agentTarget=self._target, **arguments)

    def _table(self) -> Table:
        table: Table = self._caller.run(["define", *self._command, "--", self._target])
        return table


class SettingsSection(Section):
    """The settings; what is not set is None. To delete one removes it: the provider's own value applies."""

    def __init__(self, caller: SectionCaller, target: str) -> None:
        super().__init__(caller, target, "setting", "settings")

    def __setitem__(self, key: str, value: Any) -> None:
        self._call("agent_set_setting", key=key, value=value)

    def __delitem__(self, key: str) -> None:
        self[key] = None

    def _all(self) -> Mapping[str, Any]:
        settings: Mapping[str, Any] = self._call("agent_get_settings")["settings"]
        return settings


class MetadataSection(Section):
    """The metadata. To delete a field restores its default."""

    def __init__(self, caller: SectionCaller, target: str) -> None:
        super().__init__(caller, target, "field", "describe")

    def __setitem__(self, key: str, value: Any) -> None:
        self._call("agent_update_metadata", metadata={key: value})

    def __delitem__(self, key: str) -> None:
        self[key] = None

    def _all(self) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = self._call("agent_get_metadata")["metadata"]
        return metadata


class Entries(Section):
    """Rules, references or exported tools. To assign to one that exists changes the fields that are given."""

    def __init__(self, caller: SectionCaller, target: str, noun: str) -> None:
        super().__init__(caller, target, noun, f"{noun}s", "list")

    def __setitem__(self, name: str, value: Mapping[str, Any] | str) -> None:
        fields = {"text": value} if isinstance(value, str) else dict(value)
        if name in self:
            self._call(f"agent_update_{self._noun}", **{f"{self._noun}Name": name, self._noun: fields})
        else:
            self._call(f"agent_add_{self._noun}", **{self._noun: {"name": name, **fields}})

    def _rewrite(self, key: str, before: Any, value: Any) -> None:
        if removed := before.keys() - value.keys():
            raise BadInput(
                "FIELD_READ_ONLY", f"{min(removed)} of a {self._noun} cannot be removed. Assign another value."
            )
        self[key] = {name: field for name, field in value.items() if field != before.get(name)}

    def __delitem__(self, name: str) -> None:
        self._call(f"agent_delete_{self._noun}", **{f"{self._noun}Name": name})

    def _all(self) -> Mapping[str, Any]:
        return {entry["name"]: entry for entry in self._call(f"agent_list_{self._noun}s")[f"{self._noun}s"]}


class ServersSection(Section):
    """The MCP servers."""

    def __init__(self, caller: SectionCaller, target: str) -> None:
        super().__init__(caller, target, "server", "servers", "list")

    def __setitem__(self, name: str, config: Mapping[str, Any]) -> None:
        verb = "update" if name in self else "add"
        self._call(f"agent_{verb}_mcp_server", serverName=name, config=dict(config))

    def __delitem__(self, name: str) -> None:
        self._call("agent_delete_mcp_server", serverName=name)

    def _all(self) -> Mapping[str, Any]:
        servers: Mapping[str, Any] = self._call("agent_list_mcp_servers")["servers"]
        return servers


class ProvidersSection(Section):
    """The configurations of the installed providers; secrets that are written out are masked."""

    def __init__(self, caller: SectionCaller, target: str) -> None:
        super().__init__(caller, target, "provider", "providers", "list")

    def __setitem__(self, provider: str, config: Mapping[str, str]) -> None:
        verb = "update" if provider in self else "install"
        self._call(f"agent_{verb}_provider", providerType=provider, config=dict(config))

    def __delitem__(self, provider: str) -> None:
        self._call("agent_uninstall_provider", providerType=provider)

    def _all(self) -> Mapping[str, Any]:
        installed = self._call("agent_list_providers")["installed"]
        return {name: self._call("agent_get_provider_config", providerType=name)["config"] for name in installed}


def live(value: Any, write: Write) -> Any:
    """A value that is written, as it is then, when it is changed in place, also deep within.

    Args:
        write: stores the whole changed value. What it raises leaves the value as it was.
    """
    if isinstance(value, dict):
        return _LiveDict(value, write)
    return _LiveList(value, write) if isinstance(value, list) else value


class _LiveDict(dict[Any, Any]):
    """See `live`."""

    _kind = dict

    def __init__(self, value: dict[Any, Any], write: Write) -> None:
        super().__init__({key: live(item, self._within(key)) for key, item in value.items()})
        self._write = write

    def _within(self, key: Any) -> Write:
        return lambda item: self.__setitem__(key, item)


class _LiveList(list[Any]):
    """See `live`."""

    _kind = list

    def __init__(self, value: list[Any], write: Write) -> None:
        super().__init__(live(item, self._within(index)) for index, item in enumerate(value))
        self._write = write

    def _within(self, index: int) -> Write:
        return lambda item: self.__setitem__(index, item)


def _plain(value: Any) -> Any:
    """A value of ordinary dictionaries and lists."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _mutator(name: str) -> Callable[..., Any]:
    """The method of a live list or dictionary that changes it and writes it."""

    def change(self: Any, *arguments: Any, **keywords: Any) -> Any:
        copy = _plain(self)
        result = getattr(copy, name)(*arguments, **keywords)
        self._write(copy)
        self._kind.clear(self)
        fill = self._kind.update if self._kind is dict else self._kind.extend
        fill(self, type(self)(copy, self._write))
        return self if name.startswith("__i") else result

    return change


for _class, _names in ((_LiveDict, _CHANGES[dict]), (_LiveList, _CHANGES[list])):
    for _name in _names:
        setattr(_class, _name, _mutator(_name))
