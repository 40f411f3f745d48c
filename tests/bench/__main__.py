"""`python -m tests.bench [ROW…]`: measure all rows or some; `QUICK=1` only proves that they work."""

from __future__ import annotations

import argparse
import os

from tests.bench import report, results
from tests.bench.rows import rows
from tests.bench.running import measure, prove

ROUNDS = 5


def main() -> int:
    """Measure, print the table, and keep it unless this is only a proof."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="such as B11; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each contestant runs, at least")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    chosen = parser.parse_args()
    known = {row.id: row for row in rows()}
    if unknown := {name.upper() for name in chosen.rows} - known.keys():
        parser.error(f"there is no row {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    wanted = [known[name.upper()] for name in chosen.rows] or list(known.values())
    if chosen.list:
        print("\n".join(f"{row.id:4} {row.work} | {row.counterpart} | {row.bar}" for row in wanted))
        return 0
    quick = os.environ.get("QUICK", "") not in ("", "0")
    made = prove(wanted) if quick else [line for row in wanted for line in measure(row, chosen.rounds)]
    print(f"\n{report.machine()}\n{report.versions()}\n\n{report.table(made)}")
    if not quick:
        results.save(made, known)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
