"""The questions of the manual, asked as printed of a project whose history is known, and answered by hand."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from docs.generator import ROOT
from tests.analytics.recorded import BEGAN, FAILS, PASSES, PERSON, live_of, record
from tests.code_blocks import blocks_of
from workbench.analytics.reports import STANDARD, report

pytestmark = pytest.mark.long


class Seconds:
    """Equal to the time that a program took while the test ran."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and 0 < other < 3_600

    __hash__ = None  # type: ignore[assignment]


def moment(second: float) -> datetime:
    """A time of the recorded project."""
    return datetime.fromtimestamp(BEGAN + second, UTC)


PAGE = ROOT / "docs" / "analytics.md"
QUESTIONS = {b.heading: b.code for b in blocks_of(PAGE, PAGE.read_text("utf-8")) if b.language == "sql"}
ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    # build failed at 30 and its lease of check ended at 190: 10 s each until the retry. check waited for build from 5
    # to 60, review for check from 5 to 230. Nobody claimed build for 10 + 4 s, check for 10 + 10 s, review for 20 + 5 s
    # (and 30 s more while rex was not admitted), note for 5 s. The tool waited 7 s, the merge 30 s for two tasks; the
    # test has waited 10 s for the admission of tom.
    "What do tasks wait for?": [
        ("dependency", 2, 280.0, 225.0),
        ("person", 4, 7.0 + 30 + 2 * 30 + 10, 30.0),
        ("agent", 4, 14.0 + 20 + 25 + 5, 20.0),
        ("retry", 2, 20.0, 10.0),
    ],
    # build 15 to 60, check 70 to 230; review 285 to 300, note 350 to 360.
    # Implementers' tasks took from 5 to 230, those of reviewers from 5 to 360.
    "How much does each persona get done?": [
        ("implementer", 2, (15.0 + 16 + 120 + 20) / 2, 171.0, round(2 * 3600 / 225, 1)),
        ("reviewer", 2, (15.0 + 10) / 2, 25.0, round(2 * 3600 / 355, 1)),
    ],
    "Why do things fail?": [("attempt", "OSError", 1), ("attempt", "lease lost", 1), ("gate", "failed", 1)],
    "Who loses leases, and what is tried again?": [("ada", 4, 1, 2), ("rex", 2, 0, 0)],
    # ada was admitted at 5, rex at 280; the last work ended at 360.
    "How busy are the agents?": [
        ("ada", 15.0 + 16 + 120 + 20, round(171 / 355, 3)),
        ("rex", 25.0, 0.313),
    ],
    "What decided how long a plan took?": [
        (1, "build", "ada", 55.0, 15.0 + 16, 10.0 + 10 + 4),
        (2, "check", "ada", 170.0, 120.0 + 20, 10.0 + 20),
        (3, "review", "rex", 70.0, 15.0, 55.0),
    ],
    "Who asked for what, and who approved it, after how long?": [
        ("registration", "ada", "ada", "approved", PERSON, 5.0),
        ("registration", "pia", "pia", "approved", PERSON, 5.0),
        ("tool_call", "hub__fetch", "ada", "approved", PERSON, 7.0),
        ("registration", "rex", "rex", "approved", PERSON, 30.0),
        ("integration", "lab", PERSON, "approved", PERSON, 30.0),
        ("registration", "tom", "tom", "pending", None, None),
    ],
    "What became of a task: attempts, commits, merge, artifacts?": [
        (1, "ada", "failed", None, False, None, None),
        (2, "ada", "completed", 1, True, PERSON, '["report.html"]'),
    ],
    "Which gates fail, and how long do they take?": [
        (FAILS, 1, 0, Seconds(), Seconds()),
        (PASSES, 1, 1, Seconds(), Seconds()),
    ],
    # 2.5 s of processor in 5 s are 50 %, and 3 s in 60 s are 5 %; the kernel used 1.5 s in 3 s.
    "How much processor and memory do processes use over time?": [
        ("ada", moment(75), None, 100.0, 1),
        ("ada", moment(80), 50.0, 300.0, 3),
        ("ada", moment(140), 5.0, 200.0, 1),
        ("hub", moment(20), None, 40.0, 1),
        ("trial", moment(372), None, 500.0, 1),
        ("trial", moment(375), 50.0, 800.0, 2),
    ],
    "How fast are tools, by source and server?": [("mcp", "hub", 1, 2.0, 7.0)],
    "How many tokens, and what did they cost?": [("test:script", 1, 50, 2, None)],
    "What did each plan's requests to models cost?": [(None, 1, None, 1, 50, 0, 2)],
    "Which tools did the models ask for, and in which attempts?": [],
    # From 5: build until 60, check until 230, review until 300; note from 345 to 360.
    "Which of two plans went better?": [
        ("alpha", 3, 3, 2, 225.0, (10.0 + 10 + 4 + 7 + 30) + (55 + 10 + 10 + 10 + 30) + (225 + 20 + 30 + 5)),
        ("beta", 1, 1, 0, 15.0, 5.0),
    ],
}


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory, first_commit: Path) -> Any:
    """The answer to a query about the recorded project."""
    project = Path(shutil.copytree(first_commit, tmp_path_factory.mktemp("recorded") / "project"))
    return live_of(record(project))


def test_each_question_of_the_manual_has_the_answer_of_the_history(ask: Any) -> None:
    assert list(QUESTIONS) == list(ANSWERS)
    assert len(QUESTIONS) == 15
    for question, query in QUESTIONS.items():
        assert (question, ask(query).fetchall()) == (question, ANSWERS[question])


def test_commits_lead_to_their_task_attempt_and_merge_and_what_waits_now_is_open(ask: Any) -> None:
    found = ask("SELECT message, author, task_id, attempt, epoch_us(committed_at) // 1000000 - 1800000000 FROM commits")
    assert sorted(found.fetchall()) == [("Add more.txt", "ada", 2, 2, 220), ("Add new.txt", "ada", 1, 2, 50)]
    merged = ask("SELECT DISTINCT c.merge_commit = w.commit_id FROM commits c JOIN worktrees w ON w.name = c.worktree")
    assert merged.fetchall() == [(True,)]
    waits = ask("SELECT task_id, waits_for, seconds FROM waits WHERE ended_at IS NULL")
    assert waits.fetchall() == [(5, "person", 10.0)]


# Reports

SENTENCES = {
    # 67 s of questions decided; the registration of rex waited 30 s, and so did the merge.
    "approvals": "5 questions were decided by a person after 15.4 s on average and 30 s at most (registration, by Ann "
    "Lee); 1 question still waits.",
    "comparison": "3 groups (alpha, beta and none): a completed task took 15 s on median in beta and 3.8 min in alpha; "
    "not counted: none (1 open).",
    "critical_path": "1 task decided that beta took 15 s; 5 s of it nobody worked, and note took longest (15 s).",
    "failures": "3 failures of 3 causes; the most frequent is OSError (attempt, 1 time).",
    "gantt": "6 attempts at 4 tasks by 2 agents within 5.8 min; 4 completed theirs, 1 failed, 1 lost their lease.",
    # 55, 225, 295 and 15 s from creation to completion; 31 + 140 + 15 + 10 s of them in attempts.
    "lead_times": "From creation to completion 4 tasks took 2.3 min on median and 4.9 min at most (review); "
    "33 % of it was work; not counted: 1 open.",
    "leases": "1 lease was lost in 6 attempts, by ada; 2 attempts were not the first at their task.",
    "tasks": "4 of 5 tasks completed after 23 s of work on median, 1 open.",
    "tokens": "1 answer used 50 tokens of input and 2 of output, for an unknown cost, most by Helper with test:script.",
    "tool_sources": "1 call of 1 source, 0 failed; hub is slowest (2 s on median).",
    "tools": "1 call of 1 tool, 0 failed; hub__fetch is slowest (2 s on median).",
    "totals": "4 of 5 tasks completed, 1 open; 6 attempts by 2 of 3 agents; 1 worktree merged.",
    "utilisation": "2 agents held tasks 45 % of the time until the last work ended: ada most (48 %), rex least (31 %).",
    "waits": "5 tasks waited 94.2 s on average, most of it for a dependency; the longest single wait was 3.8 min for a "
    "dependency; 1 wait still lasts.",
}


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_a_report_says_what_it_shows_and_is_a_page_without_a_network(ask: Any, name: str, tmp_path: Path) -> None:
    made = report(name, ask)
    assert made.sentence == SENTENCES.get(name, made.sentence)
    assert (made.chart is None) == (STANDARD[name].picture is None or made.frame.empty)
    html = made.save(tmp_path / "report.html").read_text()
    assert made.data["sentence"] == made.sentence
    assert html.count("<svg") == (made.chart is not None)
    outside = [address for address in re.findall(r"https?://[^\"' )]+", html) if "www.w3.org" not in address]
    assert (outside, "<script" in html) == ([], False)
    if made.chart is not None:
        assert made.save(tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_reports_of_gates_and_throughput_name_measured_durations(ask: Any) -> None:
    sentence = report("gates", ask).sentence
    assert re.fullmatch(r"1 of 2 runs of 2 gates passed; the slowest took .+ \(`.+`\)\.", sentence)
    sentence = report("throughput", ask).sentence
    assert re.fullmatch(
        r"4 tasks were completed within 5.+, most by implementer and reviewer \(2 each\); not counted: 1 open\.",
        sentence,
    )


def test_throughput_counts_completed_tasks_in_each_interval(ask: Any) -> None:
    # build 60, check 230, review 300, note 360: the 300 s between them are 59 intervals of 6 s, and what is at the end.
    assert report("throughput", ask).frame.iloc[:, :4].to_numpy().tolist() == [
        ["implementer", 0.0, 6.0, 1],
        ["implementer", 168.0, 6.0, 1],
        ["reviewer", 240.0, 6.0, 1],
        ["reviewer", 300.0, 6.0, 1],
    ]


def test_a_comparison_takes_any_column_of_tasks(ask: Any) -> None:
    for by, groups in (
        ("persona", [["implementer", 2], ["reviewer", 2], ["tester", 1]]),
        ("worktree", [["none", 3], ["lab", 2]]),
        ("agent", [["ada", 2], ["rex", 2], ["none", 1]]),
    ):
        frame = report("comparison", ask, by).frame
        assert frame[["compared", "created"]].to_numpy().tolist() == groups
