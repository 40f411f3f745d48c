"""Finding the repository that a directory is in, and making one."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.errors import BadInput
from workbench.git.run import CommitIdentity, run

_LONGEST = 8_192


def create(path: Path, object_format: str, limit: float) -> None:
    """See `Repository.create`."""
    run(["init", "--quiet", "--template=", f"--object-format={object_format}", str(path)], Path("/"), {}, limit).expect(
        (0,)
    )
    tree = run(["mktree"], path, {}, limit).expect((0,)).text
    author = CommitIdentity("Workbench", "workbench@localhost").environment()
    commit = run(["commit-tree", "-m", "Nothing", tree], path, author, limit).expect((0,)).text
    run(["update-ref", "--no-deref", "HEAD", commit], path, {}, limit).expect((0,))


def common_dir(path: Path, limit: float) -> Path:
    """The git directory of the repository that `path` is in.

    Raises:
        BadInput: ``NOT_A_REPOSITORY``, ``COPIED_WORKTREE``.
    """
    if not path.is_dir():
        raise BadInput("NOT_A_REPOSITORY", f"{path} is not a directory. Create it, then run `git init`.")
    result = run(["rev-parse", "--path-format=absolute", "--git-common-dir"], path, {}, limit)
    if result.code and "not a git repository" in result.err:
        raise BadInput(
            "NOT_A_REPOSITORY",
            f"{path} is not in a git repository. Run `git init` there and make a first commit.",
        )
    git_dir = Path(result.expect((0,)).text)
    _refuse_copied(path)
    return git_dir


def _refuse_copied(path: Path) -> None:
    """Refuse the copy of a linked worktree, in which git acts on the original's branch and index."""
    link = next((directory / ".git" for directory in (path, *path.parents) if (directory / ".git").exists()), None)
    if link is None or not link.is_file():
        return
    record = link.parent / os.fsdecode(link.read_bytes()[:_LONGEST]).removeprefix("gitdir:").strip() / "gitdir"
    if record.is_file():
        original = record.parent / os.fsdecode(record.read_bytes()[:_LONGEST]).strip()
        if original.exists() and not original.samefile(link):
            raise BadInput(
                "COPIED_WORKTREE",
                f"{link.parent} is a copy of the git worktree {original.parent}: git would change that one's branch. "
                "Use `git clone` or `git worktree add` instead of the copy.",
            )


def checkout(path: Path, git_dir: Path, limit: float) -> tuple[Path, Path | None]:
    """The top level of the checkout that `path` is in, and its record below `git_dir` if it is a linked worktree.

    From inside the git directory it is the main checkout.

    Raises:
        BadInput: ``NOT_A_REPOSITORY``, ``BARE_REPOSITORY``.
    """
    if run(["rev-parse", "--is-inside-work-tree"], path, {}, limit).text == "true":
        own = Path(run(["rev-parse", "--absolute-git-dir"], path, {}, limit).expect((0,)).text)
        top = Path(run(["rev-parse", "--show-toplevel"], path, {}, limit).expect((0,)).text)
        return top, None if own.samefile(git_dir) else own
    # Without core.worktree (submodules have it), git takes the current directory as the top.
    from_git_dir = (git_dir.parent, {"GIT_DIR": str(git_dir)})
    if run(["rev-parse", "--is-bare-repository"], *from_git_dir, limit).text == "true":
        text = f"{git_dir} is a bare repository. Open a worktree of it (`git worktree add`), or a clone."
        raise BadInput("BARE_REPOSITORY", text)
    top = Path(run(["rev-parse", "--show-toplevel"], *from_git_dir, limit).text)
    if top.is_absolute() and _git_dir(top, limit) == git_dir:
        return top, None
    raise BadInput("NOT_A_REPOSITORY", f"Open the main checkout of {git_dir} instead.")


def _git_dir(top: Path, limit: float) -> Path:
    if (top / ".git").is_dir():
        return (top / ".git").resolve()
    return Path(run(["rev-parse", "--absolute-git-dir"], top, {}, limit).text)
