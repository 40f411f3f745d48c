"""What functions print goes to the log of the call, without secrets."""

from __future__ import annotations

from pathlib import Path

from workbench.functions.output import CallLog
from workbench.rules.secrets.mask import Mask
from workbench.rules.tools.masking import marked

SCHEMA = {
    "properties": {"login": {"properties": {"pin": {"format": "password"}}}, "keys": {"items": {"writeOnly": True}}}
}


def test_the_marked_arguments_of_a_call_and_keys_are_not_in_its_log(tmp_path: Path) -> None:
    arguments = {"login": {"pin": "swordfish", "user": "ada"}, "keys": [{"a": ["pike1"]}, 123456, None, True]}
    secrets = marked(arguments, SCHEMA)
    assert secrets == {"swordfish", "pike1", "123456"}
    log = CallLog(tmp_path / "log", Mask(secrets))
    log.write("ada: swordfish, pike1, 123456\nghp_9876543210abcdefghijABCD\n")
    log.close()
    assert (tmp_path / "log").read_text() == "ada: ••••••, ••••••, ••••••\n••••••\n"
