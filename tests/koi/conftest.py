"""Stock nodes of koi-net, for the tests of the wire protocol."""

from tests.oracle import stock

__all__ = ["stock"]
