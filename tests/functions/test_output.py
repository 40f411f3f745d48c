"""The output of functions goes to the log of the call, without secrets."""

from __future__ import annotations

from pathlib import Path

from workbench.functions.output import CallLog
from workbench.rules.secrets.mask import Mask
from workbench.rules.tools.masking import marked

SCHEMA = {
    "properties": {"login": {"properties": {"pin": {"format": "password"}}}, "keys": {"items": {"writeOnly": True}}}
}


def test_a_secret_that_is_printed_in_pieces_is_not_in_the_log(tmp_path: Path) -> None:
    log = CallLog(tmp_path / "log", Mask(["swordfish"]))
    for piece in ("API_KEY=", "hunter2-x", "\n", "ghp_9876543210", "abcdefghijABCD", "\nthe sword", "fish"):
        log.write(piece)
    log.close()
    log.write("late")
    assert (tmp_path / "log").read_text() == "API_KEY=••••••\n••••••\nthe ••••••"


def test_the_marked_arguments_of_a_call_and_keys_are_not_in_its_log(tmp_path: Path) -> None:
    arguments = {"login": {"pin": "swordfish", "user": "ada"}, "keys": [{"a": ["pike1"]}, 123456, None, True]}
    secrets = marked(arguments, SCHEMA)
    assert secrets == {"swordfish", "pike1", "123456"}
    log = CallLog(tmp_path / "log", Mask(secrets))
    log.write("ada: swordfish, pike1, 123456\nghp_9876543210abcdefghijABCD\n")
    log.close()
    assert (tmp_path / "log").read_text() == "ada: ••••••, ••••••, ••••••\n••••••\n"
