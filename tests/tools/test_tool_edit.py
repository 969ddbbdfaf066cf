"""edit and multiedit: the right place is changed, in the file's own style, or the model is told why not."""

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.tools.edit_corpus import Situation
from tests.tools.edit_corpus_rest import corpus
from tests.tools.knowing import having_read
from windlass import limits
from windlass.tools.edit import Edit
from windlass.tools.editing.edits import EditRefused, Replacement, edited
from windlass.tools.files import WorkspaceRoot
from windlass.tools.multiedit import Multiedit, all_edited
from windlass.wire.tools import ToolError, WrittenFile

CORPUS = corpus()


async def edit(root: WorkspaceRoot, **arguments: Any) -> str:
    tool = Edit(root, having_read(root, arguments["file_path"]))
    return (await tool.plan(arguments, "call").run()).content


async def multiedit(root: WorkspaceRoot, *edits: tuple[str, str]) -> str:
    arguments = {"file_path": "a", "edits": [{"old_string": old, "new_string": new} for old, new in edits]}
    return (await Multiedit(root, having_read(root, "a")).plan(arguments, "call").run()).content


# -- the corpus -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("situation", CORPUS, ids=[f"{number} {made.kind}" for number, made in enumerate(CORPUS)])
async def test_an_edit_is_made_rightly_or_refused_rightly(
    root: WorkspaceRoot, workspace: Path, situation: Situation
) -> None:
    """A model's slip would cost a person's code, or a good edit be refused and tried again and again."""
    if situation.before is not None:
        (workspace / "a").write_bytes(situation.before)
    edits = [{"old_string": old, "new_string": new, "replace_all": every} for old, new, every in situation.edits]
    known = having_read(root, "a")
    try:
        if len(edits) == 1:
            await Edit(root, known).plan({"file_path": "a", **edits[0]}, "call").run()
        else:
            await Multiedit(root, known).plan({"file_path": "a", "edits": edits}, "call").run()
    except EditRefused as refused:
        assert refused.kind == situation.expected
        assert having_read(root, "a")._noted == known._noted  # nothing was written
    else:
        assert (workspace / "a").read_bytes() == situation.expected


def test_the_corpus_has_200_situations() -> None:
    """A kind could be lost without anyone noticing."""
    assert len(CORPUS) == 200


# -- edit -------------------------------------------------------------------------------------------------------------


async def test_an_exact_piece_is_replaced(root: WorkspaceRoot, workspace: Path) -> None:
    """What an agent does all day."""
    (workspace / "a").write_text("a = 1\nb = 2\n")
    await edit(root, file_path="a", old_string="b = 2", new_string="b = 3")
    assert (workspace / "a").read_text() == "a = 1\nb = 3\n"


async def test_bytes_that_are_not_touched_stay_as_they_are(root: WorkspaceRoot, workspace: Path) -> None:
    """An edit would rewrite a whole file with other line ends or in another encoding."""
    (workspace / "a").write_bytes(b"\xff\xfe caf\xe9\r\nx\r\n")
    await edit(root, file_path="a", old_string="x", new_string="ü")
    assert (workspace / "a").read_bytes() == b"\xff\xfe caf\xe9\r\n\xc3\xbc\r\n"


async def test_every_occurrence_is_replaced_only_when_asked_for(root: WorkspaceRoot, workspace: Path) -> None:
    """The wrong one of two would be changed without a word."""
    (workspace / "a").write_text("x x x")
    with pytest.raises(ToolError, match="occurs 3 times"):
        await edit(root, file_path="a", old_string="x", new_string="y")
    await edit(root, file_path="a", old_string="x", new_string="y", replace_all=True)
    assert (workspace / "a").read_text() == "y y y"


@pytest.mark.parametrize(
    ("content", "old", "hint"),
    [
        ("a", "b", "View the file"),
        (
            "def f(a, b):\n    return a\n",
            "def f(a,b):\n    return a\n",
            r"line 1: the file has 'def f\(a, b\):', you gave",
        ),
        (
            "x = 1\ny = 2  # two\nz = 3\n",
            "x = 1\ny = 2\nz = 3\n",
            r"line 2: the file has 'y = 2  # two', you gave 'y = 2'",
        ),
        ("total = count_all(1)\n", "total = count_al(2)", r"line 1: the file has 'total = count_all\(1\)'"),
        ("one\ntwo\n", "     1\tone\n     2\ttwo", "Leave out the line numbers"),
        ("", "x", "The file is empty"),
    ],
    ids=["nothing alike", "inner blanks", "one of three lines", "a line alike", "line numbers", "empty"],
)
async def test_a_piece_that_is_not_there_is_explained(
    root: WorkspaceRoot, workspace: Path, content: str, old: str, hint: str
) -> None:
    """The model would try the same again."""
    (workspace / "a").write_bytes(content.encode())
    with pytest.raises(ToolError, match=hint):
        await edit(root, file_path="a", old_string=old, new_string="c")


async def test_places_that_fit_are_told_with_their_lines(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would not know which lines to add to say which one it means."""
    (workspace / "a").write_text("x\n\nx\n" + "y\n" * 20)
    with pytest.raises(ToolError, match=r"occurs 2 times in a \(lines 1, 3\)"):
        await edit(root, file_path="a", old_string="x", new_string="z")
    with pytest.raises(ToolError, match=r"occurs 20 times in a \(lines 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, \.\.\.\)"):
        await edit(root, file_path="a", old_string="y", new_string="z")


async def test_a_tolerant_edit_says_so(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would go on believing in the indentation it made up."""
    (workspace / "a").write_text("if x:\n\ty()\n")
    said = await edit(root, file_path="a", old_string="if x:\n    y()\n", new_string="if x:\n    z()\n")
    assert (workspace / "a").read_text() == "if x:\n\tz()\n"
    assert "differs in whitespace" in said


def test_a_tolerant_edit_shows_people_what_will_be_written(root: WorkspaceRoot, workspace: Path) -> None:
    """I10: the diff would be of the text the model gave, and the file get another."""
    (workspace / "a").write_text("if x:\n\ty()\n")
    arguments = {"file_path": "a", "old_string": "if x:\n    y()\n", "new_string": "if x:\n    z()\n"}
    ask = Edit(root, having_read(root, "a")).plan(arguments, "call").ask
    assert ask.params["diff"] == "--- a\n+++ a\n@@ -1,2 +1,2 @@\n if x:\n-\ty()\n+\tz()\n"


async def test_an_empty_old_string_creates_a_file(root: WorkspaceRoot, workspace: Path) -> None:
    """Models know this from elsewhere."""
    await edit(root, file_path="a", old_string="", new_string="text")
    assert (workspace / "a").read_text() == "text"


async def test_an_empty_old_string_never_touches_an_existing_file(root: WorkspaceRoot, workspace: Path) -> None:
    """A file would be replaced by an edit that was meant to create."""
    (workspace / "a").write_text("old")
    with pytest.raises(ToolError, match="exists"):
        await edit(root, file_path="a", old_string="", new_string="text")


async def test_editing_a_missing_file_is_refused(root: WorkspaceRoot) -> None:
    """The model would not know that it has the wrong path."""
    with pytest.raises(ToolError, match="There is no file a"):
        await edit(root, file_path="a", old_string="x", new_string="y")


async def test_an_edit_of_a_file_that_changed_after_the_ask_is_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """A27: the approved diff is not the one that would be made."""
    (workspace / "a").write_text("one two")
    plan = Edit(root, having_read(root, "a")).plan({"file_path": "a", "old_string": "one", "new_string": "1"}, "call")
    (workspace / "a").write_text("one three")
    with pytest.raises(ToolError, match="changed since"):
        await plan.run()


async def test_of_two_edits_planned_at_once_the_second_is_told(root: WorkspaceRoot, workspace: Path) -> None:
    """Two sub-agents on one file: the first one's edit would vanish."""
    (workspace / "a").write_text("one two")
    plans = [
        Edit(root, having_read(root, "a")).plan({"file_path": "a", "old_string": old, "new_string": "x"}, "call")
        for old in ("one", "two")
    ]
    results = await asyncio.gather(*(plan.run() for plan in plans), return_exceptions=True)
    assert sorted(isinstance(result, ToolError) for result in results) == [False, True]


def test_an_edit_that_would_explode_is_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """A32: a short piece replaced everywhere by a long one would fill the memory."""
    (workspace / "a").write_text("x" * 1_000_000)
    arguments = {"file_path": "a", "old_string": "x", "new_string": "y" * 1_000_000, "replace_all": True}
    with pytest.raises(ToolError, match="would have 1000000000000 bytes"):
        Edit(root, having_read(root, "a")).plan(arguments, "call")


# -- multiedit --------------------------------------------------------------------------------------------------------


async def test_several_edits_are_one_change(root: WorkspaceRoot, workspace: Path) -> None:
    """Undo would need as many steps as there were edits, and people be asked as often."""
    (workspace / "a").write_text("one two three")
    arguments = {
        "file_path": "a",
        "edits": [{"old_string": "one", "new_string": "1"}, {"old_string": "1 two", "new_string": "1 2"}],
    }
    output = await Multiedit(root, having_read(root, "a")).plan(arguments, "call").run()
    assert output.written == [WrittenFile(f"{workspace}/a", "1 2 three", "one two three")]


async def test_one_edit_that_fails_leaves_the_file_as_it_was(root: WorkspaceRoot, workspace: Path) -> None:
    """A file would be half changed, in a state that nobody meant."""
    (workspace / "a").write_text("one two three")
    with pytest.raises(ToolError, match="Nothing was changed, because of edit 2 of 3: `old_string` is not in a"):
        await multiedit(root, ("one", "1"), ("four", "4"), ("three", "3"))
    assert (workspace / "a").read_text() == "one two three"


async def test_edits_that_undo_each_other_are_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """People would be asked to approve nothing."""
    (workspace / "a").write_text("one")
    with pytest.raises(ToolError, match="nothing would change"):
        await multiedit(root, ("one", "two"), ("two", "one"))


@pytest.mark.parametrize("edits", [[], [{"old_string": "a", "new_string": "b"}] * (limits.MULTIEDIT_EDITS + 1)])
def test_no_edits_and_too_many_are_refused(root: WorkspaceRoot, edits: list[Any]) -> None:
    """A32."""
    with pytest.raises(ToolError, match="edits"):
        Multiedit(root, having_read(root)).plan({"file_path": "a", "edits": edits}, "call")


def test_the_schema_of_multiedit_has_no_reference() -> None:
    """Some providers follow none; the model would not know what an edit is made of."""
    assert "$ref" not in str(Multiedit.schema)


# -- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "old"),
    [
        ("ab " * 1_000_000, "ab " * 300_000 + "b"),
        ("x\n" * 1_000_000, "  x\n" * 200_000),
        ("\u00e9" * 1_000_000, "e\u0301" * 100_000 + "x"),
        ("".join(f"line {number}\n" for number in range(200_000)), "line x\n" * 1_000),
    ],
    ids=["one long line", "the same line over and over", "accents only", "a file of many lines"],
)
def test_what_is_not_there_is_found_out_in_bounded_time(before: str, old: str) -> None:
    """A32: a comparison that is quadratic would take hours for a file of a few megabytes."""
    began = time.monotonic()
    with pytest.raises(EditRefused):
        edited("a", before.encode(), Replacement(old, "y"))
    assert time.monotonic() - began < 10.0


def test_a_hint_for_lines_that_are_all_a_little_alike_takes_no_time() -> None:
    """A32: what is only a help to the model would keep a thread of the server busy for ten seconds."""
    dice = random.Random(1)
    before = "".join("".join(dice.choices("abcdefgh ", k=200)) + "\n" for _ in range(limits.NEAREST_LINES))
    began = time.thread_time()
    with pytest.raises(EditRefused):
        edited("a", before.encode(), Replacement("abcdefgh " * 22, "y"))
    assert time.thread_time() - began < 3.0  # it was twice as long


def test_in_a_very_large_file_only_line_ends_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """A32: comparing megabytes in every tolerant way holds up the process; but one with \\r\\n must be editable."""
    monkeypatch.setattr(limits, "TOLERANT_CHARACTERS", 10)
    assert edited("a", b"one\r\ntwo\r\nthree\r\n", Replacement("one\ntwo", "1\n2")).content.startswith(b"1\r\n2\r\n")
    with pytest.raises(EditRefused, match="In a file of this size"):
        edited("a", b"  one\r\n  two\r\n", Replacement("one\ntwo", "1\n2"))


def test_many_tolerant_edits_of_a_large_file_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A32: a hundred searches through megabytes in one call, which no cancel can stop."""
    monkeypatch.setattr(limits, "TOLERANT_EDITS_BYTES", 20)
    edits = [Replacement(f"{word}\n  end", f"{word}!\n  end") for word in ("one", "two")]
    with pytest.raises(EditRefused, match="up to edit 2 of 2, 2 of the `old_string`s are not exactly"):
        all_edited("a", b"one\n\tend\ntwo\n\tend\n", edits)


async def test_what_is_kept_of_two_edits_in_a_row_is_what_each_of_them_found(
    root: WorkspaceRoot, workspace: Path
) -> None:
    """To undo the second would also undo the first, or bring back what was never there."""
    (workspace / "a").write_text("one")
    tool = Edit(root, having_read(root, "a"))
    kept = []
    for old, new in (("one", "two"), ("two", "three")):
        plan = tool.plan({"file_path": "a", "old_string": old, "new_string": new}, "call")
        kept += (await plan.run()).written
    assert [(file.before, file.content) for file in kept] == [("one", "two"), ("two", "three")]
