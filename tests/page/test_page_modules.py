"""The page's modules that decide without drawing, each alone, in a real browser."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.page.contexts import Contexts
from tests.page.profile import Profile
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE_CHARACTERS = 100_000  # as long as code that is coloured may be
LINEAR_MILLISECONDS = 2_000  # quadratic time would be minutes, also on a machine that is twenty times faster


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(contexts: Contexts, page_server: tuple[ServerProcess, ModelServer]) -> AsyncIterator[Page]:
    """A tab on the first screen, for all of these tests: they only import the page's scripts there."""
    profile = Profile(page_server[0], contexts, await contexts.lend())
    await profile.sign_in()
    yield await profile.tab()
    await profile.close()


async def cut(page: Page, text: str, pieces: list[int]) -> dict[str, Any]:
    """The blocks that are finished when a text has come in pieces, and what is left."""
    found: dict[str, Any] = await page.evaluate(
        """async ([text, pieces]) => {
            const { blockCutter } = await import("/page/blocks.js");
            const cutter = blockCutter();
            const blocks = pieces.flatMap((end) => cutter.take(text.slice(0, end)));
            return { blocks, rest: text.slice(cutter.tail), isInCode: cutter.isInCode };
        }""",
        [text, [*pieces, len(text)]],
    )
    return found


# -- blocks.js --------------------------------------------------------------------------------------------------------


async def test_a_code_block_is_never_cut_at_a_blank_line_in_it(page: Page) -> None:
    """Half of a program would be drawn as code, and the rest as prose."""
    text = "Before.\n\n```python\na = 1\n\nb = 2\n```\n\nAfter.\n\n~~~\n``` is not the end\n\n~~~\n\nDone.\n"
    found = await cut(page, text, [])
    assert found["blocks"] == [
        "Before.\n\n",
        "```python\na = 1\n\nb = 2\n```\n\n",
        "After.\n\n",
        "~~~\n``` is not the end\n\n~~~\n\n",
    ]
    assert found["rest"] == "Done.\n"


async def test_code_inside_a_line_opens_no_code_block(page: Page) -> None:
    """All that follows three backticks in a sentence would stay plain until the answer ends."""
    found = await cut(page, "```ls``` lists files.\n\nNext.\n", [])
    assert found["blocks"] == ["```ls``` lists files.\n\n"] and not found["isInCode"]


async def test_a_list_with_blank_lines_stays_one_block(page: Page) -> None:
    """Each item would be numbered 1."""
    found = await cut(page, "1. one\n\n   more of it\n\n2. two\n\nAfter.\n", [])
    assert found["blocks"] == ["1. one\n\n   more of it\n\n2. two\n\n"]


async def test_blocks_do_not_depend_on_how_the_text_came(page: Page) -> None:
    """The same answer would look different to those who came later."""
    text = "# A\n\nb\nc\n\n- d\n\n- e\n\n```\nf\n\ng\n```\n\n> h\n\n    i\n\nj\n" * 3
    whole = await cut(page, text, [])
    chance = random.Random(7)
    for _ in range(20):
        ends = sorted(chance.sample(range(len(text)), 15))
        assert await cut(page, text, ends) == whole
    assert "".join(whole["blocks"]) + whole["rest"] == text


# -- message_log.js ---------------------------------------------------------------------------------------------------


async def grown(page: Page, deltas: list[dict[str, Any]], text: str = "") -> dict[str, Any]:
    """What each delta is answered with, and the text in the end."""
    found: dict[str, Any] = await page.evaluate(
        """async ([deltas, text]) => {
            const { createMessageLog } = await import("/page/message_log.js");
            const log = createMessageLog();
            log.put({ id: "m", parts: text ? [{ type: "text", data: { text } }] : [] });
            const answers = deltas.map((delta) => log.grow({ message_id: "m", part: 0, field: "text", ...delta }));
            return { answers, text: log.list[0].parts[0]?.data.text ?? "" };
        }""",
        [deltas, text],
    )
    return found


async def test_deltas_are_counted_in_code_points(page: Page) -> None:
    """After the first emoji the text would have holes, or letters twice."""
    deltas = [{"type": "text", "at": 0, "text": "a😀"}, {"at": 2, "text": "𝒷c"}, {"at": 4, "text": "é"}]
    assert await grown(page, deltas) == {"answers": [True, True, True], "text": "a😀𝒷cé"}


async def test_a_repeat_adds_only_what_is_new(page: Page) -> None:
    """What was loaded and what was streamed would both be shown."""
    deltas = [{"at": 0, "text": "😀😀"}, {"at": 1, "text": "😀x😀"}, {"at": 0, "text": "😀"}]
    assert await grown(page, deltas, "😀😀") == {"answers": [False, True, False], "text": "😀😀x😀"}


async def test_a_hole_is_noticed_and_changes_nothing(page: Page) -> None:
    """A sentence would lose its middle, and nobody would ask for it."""
    deltas: list[dict[str, Any]] = [
        {"at": 3, "text": "late"},
        {"part": 1, "at": 0, "text": "no type, so no beginning"},
        {"part": 2, "type": "text", "at": 0, "text": "a part is missing"},
        {"message_id": "other", "at": 0, "text": "a message is missing"},
    ]
    assert await grown(page, deltas, "😀!") == {"answers": ["hole"] * 4, "text": "😀!"}


async def test_a_message_that_was_deleted_leaves_the_others_in_their_places(page: Page) -> None:
    """The next words would go into the wrong message."""
    shown = await page.evaluate(
        """async () => {
            const { createMessageLog } = await import("/page/message_log.js");
            const log = createMessageLog();
            for (const id of ["a", "b", "c"]) log.put({ id, parts: [{ type: "text", data: { text: id } }] });
            log.remove("b");
            log.grow({ message_id: "c", part: 0, field: "text", at: 1, text: "!" });
            return [log.list.map((one) => one.parts[0].data.text), log.before("c"), log.before("a"), log.has("b")];
        }"""
    )
    assert shown == [["a", "c!"], "a", "", False]


# -- sse.js -----------------------------------------------------------------------------------------------------------


async def test_events_do_not_depend_on_where_the_network_cuts_them(page: Page) -> None:
    """An event that comes in two pieces would be lost, or two would become one."""
    text = (
        'retry: 1000\n\n: hb\n\nid: e.1\ndata: {"a": 1}\n\n'
        "data: one\ndata:two\n\n\nid: e.2\ndata: 😀\n\ndata: unfinished"
    )
    events = await page.evaluate(
        """async (text) => {
            const { eventParser } = await import("/page/sse.js");
            const bySize = [1, 2, 3, 7, text.length].map((size) => {
                const parse = eventParser();
                const found = [];
                for (let at = 0; at < text.length; at += size) found.push(...parse(text.slice(at, at + size)));
                return JSON.stringify(found);
            });
            return [...new Set(bySize)];
        }""",
        text,
    )
    expected = '[{"id":"e.1","data":"{\\"a\\": 1}"},{"id":"","data":"one\\ntwo"},{"id":"e.2","data":"😀"}]'
    assert events == [expected]


async def test_a_long_event_in_many_pieces_takes_linear_time(page: Page) -> None:
    """A message with a picture would stop the page of everyone."""
    took, length = await page.evaluate(
        """async () => {
            const { eventParser } = await import("/page/sse.js");
            const parse = eventParser();
            const begin = performance.now();
            parse("data: ");
            for (let count = 0; count < 2000; count += 1) parse("x".repeat(8192));
            const [event] = parse("\\n\\n");
            return [performance.now() - begin, event.data.length];
        }"""
    )
    assert length == 2000 * 8192
    assert took < LINEAR_MILLISECONDS


# -- visible.js -------------------------------------------------------------------------------------------------------


async def shown(page: Page, function: str, text: str) -> str:
    found: str = await page.evaluate(
        """async ([name, text]) => {
            const visible = await import("/page/visible.js");
            const made = visible[name](text);
            if (typeof made === "string") return made;
            const { h } = await import("/page/dom.js");
            return h("p", null, made).textContent;
        }""",
        [function, text],
    )
    return found


HIDDEN = ["\u202e", "\u2066", "\u200b", "\u00ad", "\ufeff", "\u2028", "\U000e0041", "\x00", "\x07", "\x9b", "\u061c"]


async def test_characters_that_deceive_are_made_visible(page: Page) -> None:
    """A command could read like another one (A26)."""
    text = "a".join(HIDDEN)
    names = "a".join(f"<U+{ord(character):04X}>" for character in HIDDEN)
    for function in ("prose", "exact", "exactLine", "line"):
        assert await shown(page, function, text) == names


async def test_what_is_decided_on_hides_no_blank_and_no_line_break(page: Page) -> None:
    """Two commands that differ could look the same (A26)."""
    assert await shown(page, "exact", "rm\u00a0-rf\u3000x\ny\tz") == "rm<U+00A0>-rf<U+3000>x↵\ny⇥\tz"
    assert await shown(page, "exactLine", "a\nb\tc") == "a\\nb\\tc"


async def test_ordinary_writing_stays_as_it_is(page: Page) -> None:
    """Persian words and families of emoji would be full of codes."""
    for text in ("می‌خواهم", "👩‍👩‍👧 ❤️", "Grüße, 漢字", "tab\tand\nline"):
        assert await shown(page, "prose", text) == text


async def test_terminal_sequences_and_overwritten_lines_are_dropped(page: Page) -> None:
    """A progress bar would fill the conversation."""
    assert await shown(page, "prose", "\x1b[31mred\x1b[0m 10%\r 50%\r100%\r\ndone\x1b]0;title\x07") == "100%\ndone"


# -- highlight.js -----------------------------------------------------------------------------------------------------


LANGUAGES = ["python", "javascript", "shell", "sql", "html", "c", "yaml", "diff", "constructor"]
SEEDS = ['"', "'''", "/*", "<!--", "`", "\\", '"\\', "0x", "1e", "a", "#", "--", "<a", "$"]


async def test_hostile_code_is_coloured_in_linear_time_and_stays_the_same_text(page: Page) -> None:
    """A model could stop everyone's page with a few kilobytes of quotes."""
    bad = await page.evaluate(
        """async ([languages, seeds, length, most]) => {
            const { highlight } = await import("/page/highlight.js");
            const tried = languages.flatMap((language) => seeds.map((seed) => {
                const code = seed.repeat(Math.floor(length / seed.length));
                const begin = performance.now();
                const made = highlight(code, language);
                const took = performance.now() - begin;
                return { language, seed, took, isSame: made.textContent === code };
            }));
            return tried.filter(({ took, isSame }) => took > most || !isSame);
        }""",
        [LANGUAGES, SEEDS, HOSTILE_CHARACTERS, LINEAR_MILLISECONDS],
    )
    assert bad == []


# -- timeline_rows.js -------------------------------------------------------------------------------------------------


async def test_spans_that_overlap_are_drawn_in_lanes_of_their_own(page: Page) -> None:
    """Of two tools that ran at once one would hide the other."""
    lanes = await page.evaluate(
        """async () => {
            const { lanesOf } = await import("/page/timeline_rows.js");
            const span = (kind, start, end, label) => ({ kind, start, end, label });
            const spans = [span("model", 0, 2, "m"), span("tool", 2, 5, "a"), span("tool", 3, 0, "b"),
                span("tool", 5, 6, "c"), span("unknown", 0, 9, "x")];
            return lanesOf(spans, 8).map((lane) => [lane.name, lane.spans.map((one) => one.label).join("")]);
        }"""
    )
    assert lanes == [["Model", "m"], ["Tools", "ac"], ["", "b"]]


async def test_the_axis_has_few_marks_for_any_length(page: Page) -> None:
    """A run of a week, or of a millisecond, would draw marks until the page stops."""
    counts = await page.evaluate(
        """async () => {
            const { ticks } = await import("/page/timeline_rows.js");
            const lengths = [0, 0.0004, 0.9, 59, 3601, 86400 * 30, 1e12];
            return lengths.flatMap((seconds) => [1, 4, 12].map((most) => ticks(seconds, most).length - most));
        }"""
    )
    assert all(count <= 2 for count in counts), counts


async def test_a_clock_that_is_wrong_does_not_stretch_a_run(page: Page) -> None:
    """A phone whose clock is a year ahead would show a run of a year."""
    ends = await page.evaluate(
        """async () => {
            const { endOf } = await import("/page/timeline_rows.js");
            const run = { start: 100, end: 0, spans: [{ start: 110, end: 0 }] };
            return [150, 50, 100 + 365 * 86400].map((clock) => endOf(run, clock));
        }"""
    )
    assert ends == [150, 110, 110]


# -- routes.js --------------------------------------------------------------------------------------------------------


async def test_an_address_and_what_it_means_are_the_same_thing(page: Page) -> None:
    """A link to a session would lead somewhere else."""
    places = [
        {"workspace": "ws_1", "session": "", "run": "", "message": ""},
        {"workspace": "ws/../x", "session": "s#?%", "run": "", "message": ""},
        {"workspace": "ws_1", "session": "ses", "run": "r-1", "message": ""},
        {"workspace": "ws_1", "session": "ses", "run": "", "message": "m_1"},
    ]
    back = await page.evaluate(
        """async (places) => {
            const { parseRoute, routeTo } = await import("/page/routes.js");
            return places.map((place) => parseRoute(routeTo(place)));
        }""",
        places,
    )
    assert back == places


async def test_nonsense_in_the_address_is_no_place(page: Page) -> None:
    """A mistyped link would break the page instead of showing the first screen."""
    nowhere = {"workspace": "", "session": "", "run": "", "message": ""}
    found = await page.evaluate(
        """async (hashes) => {
            const { parseRoute } = await import("/page/routes.js");
            return hashes.map(parseRoute);
        }""",
        ["", "#", "#/", "#/w", "#/w/%E0%A4%A", "#/x/y", "#/constructor/z", "#////"],
    )
    assert found == [nowhere] * 8
