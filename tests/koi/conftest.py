"""Stock nodes of koi-net, for the tests of the wire protocol."""

from tests.oracle import koi_net_environments, stock

__all__ = ["koi_net_environments", "stock"]
