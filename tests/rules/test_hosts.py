"""Which hosts a box may reach: patterns, and addresses that are not what their names say."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from workbench.errors import BadInput
from workbench.rules.hosts import MOST_PORTS, HostPattern, HostRules, public

WRONG = {
    "": "it has no host",
    ":443": "it has no host",
    "https://pypi.org": "it is an address of a page",
    "me@pypi.org": "it has no host",
    "pypi.org:": "its port is no number",
    "pypi.org:0": "its port is no number",
    "pypi.org:65536": "its port is no number",
    "pypi.org:https": "its port is no number",
    "[::1]x": "its port is no number",
    "[::1": "its port is no number",
    "*": "a star stands for the beginning",
    "pypi.*:443": "a star stands for the beginning",
    "*pypi.org": "a star stands for the beginning",
    "pypi.org/simple": "it has a path",
    "10.0.0.1/8:5432": "it has a path, or is a network",
    "a..b": "that is no name of a host",
    "-a.b": "that is no name of a host",
    "pypi org": "it has no host",
    "127.1": "it is neither a name nor a whole address",
    "0x7f.0x1": "it is neither a name nor a whole address",
    f"{'a' * 64}.org": "that is no name of a host",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_pattern_says_what_is_wrong_and_what_to_write(text: str) -> None:
    with pytest.raises(BadInput) as raised:
        HostPattern.parse(text)
    assert raised.value.code == "BAD_HOST_PATTERN"
    assert WRONG[text] in raised.value.message
    assert "Write host:port or *.suffix:port" in raised.value.message


@pytest.mark.parametrize(
    ("text", "host", "port", "expected"),
    [
        ("pypi.org", "pypi.org", 443, True),
        ("PyPI.org.", "pypi.org", 443, True),
        ("pypi.org", "pypi.org", 80, False),
        ("pypi.org:80", "pypi.org", 80, True),
        ("pypi.org", "files.pypi.org", 443, False),
        ("pypi.org", "notpypi.org", 443, False),
        ("*.pypi.org", "a.b.pypi.org", 443, True),
        ("*.pypi.org", "pypi.org", 443, False),
        ("*.pypi.org", "notpypi.org", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("192.0.2.7:5432", "192.0.2.7", 5432, True),
        ("[2001:db8::7]:80", "2001:db8::7", 80, True),
        ("2001:db8::7", "2001:db8::7", 443, True),
        ("10.0.0.0/8:5432", "10.1.2.3", 5432, True),
        ("10.0.0.0/8:5432", "11.1.2.3", 5432, False),
    ],
)
def test_a_pattern_names_a_host_at_its_port(text: str, host: str, port: int, expected: bool) -> None:
    assert HostPattern.parse(text).names(host, port) is expected


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.0.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
        ),
        *("198.18.0.1", "::", "::1", "fe80::1", "fd00::1", "fec0::1", "ff02::1", "2001:db8::1", "::127.0.0.1"),
        *("::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "2002:7f00:1::", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1"),
        *("64:ff9b:1::1", "2001:0:7f00:1::80ff:fffe", "2001:0:808:808::f5ff:fffe"),
    ],
)
def test_an_address_of_this_machine_or_its_networks_is_not_public_however_it_is_written(address: str) -> None:
    assert not public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert public(ip_address(address))


def why(rules: HostRules, host: str, port: int, *addresses: str) -> str:
    refusal = rules.refuse(host, port, addresses)
    return "" if refusal is None else str(refusal)


def test_a_name_is_refused_unless_all_its_addresses_are_public_or_opened() -> None:
    rules = HostRules.parse(["pypi.org", "*.lab:80"], ["db.lab:5432", "10.0.0.0/8:80"])
    assert why(rules, "pypi.org", 443, "8.8.8.8", "2606:4700::1") == ""
    assert why(rules, "pypi.org", 443, "8.8.8.8", "127.0.0.1") == (
        "HOST_NOT_PUBLIC: pypi.org:443 cannot be reached, because it has the address 127.0.0.1, which is not public: "
        'the setting private opens it, with "pypi.org:443".'
    )
    assert "because its name has no address: check how it is written" in why(rules, "pypi.org", 443)
    assert "the setting network opens it" in why(rules, "evil.org", 443, "8.8.8.8")
    assert why(rules, "db.lab", 5432, "192.168.0.9") == ""
    assert why(rules, "www.lab", 80, "10.0.0.9") == ""
    assert why(rules, "10.0.0.9", 80, "10.0.0.9") == ""
    assert "192.168.0.9" in why(rules, "www.lab", 80, "10.0.0.9", "192.168.0.9")


def test_a_private_host_without_a_port_counts_for_the_hosts_of_the_network_and_opens_nothing_itself() -> None:
    rules = HostRules.parse(["db.lab:5432", "10.0.0.7:22"], ["10.0.0.0/8"])
    assert rules.ports == {5432, 22}
    assert why(rules, "db.lab", 5432, "10.0.0.9") == why(rules, "10.0.0.7", 22, "10.0.0.7") == ""
    assert "not among the hosts" in why(rules, "10.0.0.9", 5432, "10.0.0.9")
    assert "which is not public" in why(rules, "db.lab", 5432, "192.168.0.9")


def test_a_port_is_open_on_every_host_but_where_a_machine_in_a_cloud_finds_its_keys() -> None:
    rules = HostRules.parse([], [], connect=[80], forward=[8765])
    assert why(rules, "127.0.0.1", 80, "127.0.0.1") == why(rules, "any.org", 80, "8.8.8.8") == ""
    assert "the setting private opens it" in why(rules, "169.254.169.254", 80, "169.254.169.254")
    assert "the setting private opens it" in why(rules, "keys.org", 80, "::ffff:169.254.169.254")
    assert why(rules, "127.0.0.1", 8765) == why(rules, "::1", 8765) == ""
    assert "not among the hosts" in why(rules, "10.0.0.1", 8765, "10.0.0.1")


def test_a_name_leaves_this_machine_only_if_a_pattern_has_it_or_a_port_is_open() -> None:
    rules = HostRules.parse(["*.org"], ["10.0.0.0/8", "db.lab"])
    assert rules.refuse_name("db.lab") is not None
    assert rules.refuse_name("secret.evil.com") is not None
    assert rules.refuse_name("pypi.org") is None
    assert HostRules.parse([], [], connect=[443]).refuse_name("secret.evil.com") is None


def test_hosts_have_a_limited_number_of_ports() -> None:
    texts = [f"pypi.org:{port}" for port in range(1, MOST_PORTS + 2)]
    assert len(HostRules.parse(texts[1:], []).ports) == MOST_PORTS
    with pytest.raises(BadInput, match="more than 64 different ports"):
        HostRules.parse(texts, [])
