"""The history of one directory, as the repository around it has it."""

from __future__ import annotations

from pathlib import Path

from tests.git.parts import commit, git, write
from tests.given import refused
from workbench.git import Repository
from workbench.git.commits import LARGEST_FILE, DirectoryHistory


def history_of(directory: Path) -> DirectoryHistory:
    found = DirectoryHistory.of(directory)
    assert found is not None
    return found


def every(path: str) -> bool:
    return True


def test_only_commits_that_changed_the_directory_are_listed(root: Path) -> None:
    first = commit(root, {"agents/a/agent.yaml": "one\n"}, "Add a")
    commit(root, {"agents/b/agent.yaml": "other\n"}, "Add b")
    second = commit(root, {"agents/a/agent.yaml": "two\n", "shared": "x\n"}, "Change a")
    history = history_of(root / "agents" / "a")
    assert [(one.id, one.subject) for one in history.last_commits(10)] == [(second, "Change a"), (first, "Add a")]
    assert [one.id for one in history.last_commits(1)] == [second]


def test_the_files_of_each_commit_are_read(root: Path) -> None:
    before = git(root, "rev-parse", "HEAD")
    first = commit(root, {"a/agent.yaml": "one\n", "a/rules/r.md": "rule\n"})
    second = commit(root, {"a/agent.yaml": "two\n", "a/other.txt": "x"})
    history = history_of(root / "a")
    assert history.contents([second, first, before], lambda path: path != "other.txt") == [
        {"agent.yaml": b"two\n", "rules/r.md": b"rule\n"},
        {"agent.yaml": b"one\n", "rules/r.md": b"rule\n"},
        {},
    ]


def test_a_directory_that_is_a_repository_itself_has_its_history(root: Path) -> None:
    last = commit(root, {"prompt.md": "Be brief.\n"}, "A prompt")
    history = history_of(root)
    assert [one.id for one in history.last_commits(1)] == [last]
    assert history.contents([last], every)[0]["prompt.md"] == b"Be brief.\n"


def test_files_are_read_as_they_are_stored(root: Path) -> None:
    content = b"no newline at the end \x00\xff 40 blob 3\nend"
    (root / "a").mkdir()
    (root / "a" / "x").write_bytes(content)
    write(root, {"a/empty": "", ".gitattributes": "* filter=evil\n"})
    git(root, "config", "filter.evil.smudge", f"touch {root / 'ran'}; cat")
    commit(root, {})
    assert history_of(root / "a").contents([git(root, "rev-parse", "HEAD")], every) == [{"x": content, "empty": b""}]
    assert not (root / "ran").exists()


def test_links_and_files_that_are_too_large_are_not_read(root: Path) -> None:
    (root / "a").mkdir()
    (root / "a" / "link").symlink_to("/etc/passwd")
    first = commit(root, {"a/x": "x"})
    second = commit(root, {"a/x": "x" * (LARGEST_FILE + 1)})
    assert history_of(root / "a").contents([first, second], every) == [{"x": b"x"}, {}]


def test_a_directory_that_was_deleted_keeps_its_history(root: Path) -> None:
    commit_id = commit(root, {"agents/a/x": "x"}, "Add a")
    git(root, "rm", "-r", "--quiet", "agents")
    deleted = commit(root, {}, "Delete a")
    history = history_of(root / "agents" / "a")
    assert [one.id for one in history.last_commits(10)] == [deleted, commit_id]
    assert history.contents([deleted, commit_id], every) == [{}, {"x": b"x"}]


def test_odd_names_of_directories_are_taken_literally(root: Path) -> None:
    for name in ("*", "-x", ":(top)", "with space", "ünïcödé"):
        commit_id = commit(root, {f"agents/{name}/agent.yaml": name}, name)
        history = history_of(root / "agents" / name)
        assert [one.id for one in history.last_commits(10)] == [commit_id]
        assert history.contents([commit_id], every) == [{"agent.yaml": name.encode()}]


def test_outside_of_a_repository_or_without_a_commit_there_is_no_history(root: Path, tmp_path: Path) -> None:
    assert DirectoryHistory.of(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    assert DirectoryHistory.of(tmp_path) is None
    write(root, {"a/x": "x"})
    assert history_of(root / "a").last_commits(10) == []


def test_a_linked_worktree_has_the_history_of_its_own_branch(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    write(tmp_path / "side", {"a/x": "x"})
    git(tmp_path / "side", "add", "--all")
    git(tmp_path / "side", "commit", "--quiet", "--message", "on the side")
    assert [one.subject for one in history_of(tmp_path / "side" / "a").last_commits(10)] == ["on the side"]


def test_commits_are_found_only_by_their_ids(root: Path) -> None:
    commit_id = commit(root, {"a/x": "x"})
    history = history_of(root / "a")
    assert [history.find_commit(name) for name in ("HEAD", commit_id, commit_id[:8])] == [commit_id] * 3
    for name in ("", "0" * 40, "main", "--all", "HEAD~1", "HEAD^{tree}", ":/first", "x\n", "@{-1}"):
        refused("VERSION_NOT_FOUND", history.find_commit, name)


def test_objects_that_are_missing_are_not_fetched(root: Path, tmp_path: Path) -> None:
    commit_id = commit(root, {"a/x": "x", "a/y": "y"})
    blob = git(root, "rev-parse", f"{commit_id}:a/y")
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.url": f"ext::touch {tmp_path / 'ran'}",
        "remote.evil.promisor": "true",
        "protocol.ext.allow": "always",
    }.items():
        git(root, "config", key, value)
    assert history_of(root / "a").last_commits(10)
    assert history_of(root / "a").contents([commit_id], every) == [{}]
    assert not (tmp_path / "ran").exists()


def test_the_commits_since_others_are_counted_as_one_by_one(root: Path, repo: Repository) -> None:
    first = commit(root, {"a": "1"})
    git(root, "checkout", "-q", "-b", "side")
    side = commit(root, {"b": "1"})
    git(root, "checkout", "-q", "main")
    second = commit(root, {"a": "2"})
    git(root, "merge", "-q", "-m", "Merge", "side")
    head = commit(root, {"a": "3"})
    git(root, "checkout", "-q", "--orphan", "alone")
    alone = commit(root, {"c": "1"})
    for others in ({first, side, second, head}, {first, alone}, {alone}, set[str]()):
        one_by_one = {other: repo.ahead_behind(head, other)[0] for other in others}
        assert repo.count_since(head, [*others, "0" * 40]) == one_by_one
    assert repo.count_since(side, [second]) == {second: 1}
