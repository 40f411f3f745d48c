"""The KOI-net wire protocol, version 1.1 and later: RIDs, payloads, signed envelopes, nodes, edges and requests.

Specification: https://blockscience.github.io/koi-net-spec. Where it is silent, koi-net 2.1.2 decides.
"""
