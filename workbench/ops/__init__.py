"""Operations: their callers (`caller`), their definition (`operation`), and running them (`dispatch`)."""

from workbench.ops.caller import ANONYMOUS, OPERATOR, SYSTEM, Caller, Ctx
from workbench.ops.dispatch import dispatch
from workbench.ops.operation import Catalogue, Ok, Op, collect, first_problems, modules_of, op, problems_of

__all__ = [
    "ANONYMOUS",
    "OPERATOR",
    "SYSTEM",
    "Caller",
    "Catalogue",
    "Ctx",
    "Ok",
    "Op",
    "collect",
    "dispatch",
    "first_problems",
    "modules_of",
    "op",
    "problems_of",
]
