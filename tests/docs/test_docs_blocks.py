"""Every fenced block of the documentation is something that a test can hold against the truth, or says why not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import LANGUAGES, Block, every_block, parsed
from tests.docs.wire_shapes import documents, is_of_its_type
from tests.test_docs_races import names_in
from windlass.config import load

ROOT = Path(__file__).parents[2]
BLOCKS = every_block()
FOREIGN = ("ini", "nginx", "dockerfile", "yaml")  # languages of programs that are not ours and not here
NOT_RUN = 8  # blocks that nobody executes, each with its reason. Make it smaller, not larger.


def of(*languages: str) -> list[Any]:
    return [pytest.param(block, id=block.place) for block in BLOCKS if block.language in languages]


def test_every_block_has_a_language_that_can_be_checked() -> None:
    """A block in no language is text that nobody looks at twice."""
    assert [block.place for block in BLOCKS if block.language not in LANGUAGES] == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    """Whoever writes a page could leave the truth of it to the reader."""
    left_out = [f"{block.place}: {block.said}" for block in BLOCKS if block.remark == "not run"]
    assert len(left_out) <= NOT_RUN, "\n".join(left_out)


def test_a_block_of_a_foreign_program_says_that_it_is_not_run() -> None:
    """It would look as if it had been tried."""
    assert [block.place for block in BLOCKS if block.language in FOREIGN and block.remark != "not run"] == []


def test_a_text_is_the_output_of_what_is_above_it_or_says_who_checks_it() -> None:
    """A picture of a terminal that nobody made is an invention."""
    texts = [block for block in BLOCKS if block.language == "text"]
    assert [block.place for block in texts if not block.is_output and not block.remark] == []


@pytest.mark.parametrize("block", [param for param in of(*LANGUAGES) if param.values[0].remark == "tested by"])
def test_the_test_that_checks_a_block_exists(block: Block) -> None:
    """A test that was renamed would leave a block that nothing shows."""
    file, _, name = block.said.partition("::")
    assert (ROOT / file).exists() and name in names_in(file)


@pytest.mark.parametrize("block", of("toml"))
def test_a_config_on_a_page_is_valid(block: Block, tmp_path: Path) -> None:
    """People copy it, and a setting that was renamed would stay in it."""
    file = tmp_path / "config.toml"
    file.write_text(block.body)
    load(file)


@pytest.mark.parametrize("block", of("json", "jsonl"))
def test_json_on_a_page_can_be_read_and_is_what_it_is_said_to_be(block: Block) -> None:
    """Whoever writes a client from the page would be told that it makes no sense."""
    for document in documents(block):
        assert isinstance(json.loads(document), dict | list)
        assert block.remark != "type" or is_of_its_type(document, block.said), document


@pytest.mark.parametrize("block", of("python"))
def test_a_program_on_a_page_is_a_program(block: Block) -> None:
    """A piece of one cannot be pasted; one that is saved as a file and never started is not tried."""
    compile(block.body, block.place, "exec")
    used = [other for other in BLOCKS if other.page == block.page and other.language in ("sh", "toml")]
    assert not block.file or any(Path(block.file).stem in other.body for other in used)


def test_a_block_is_read_with_what_is_said_above_it() -> None:
    """A remark that is not seen would let a block run, or hide another one."""
    found = parsed(
        "page", "<!-- not run: why -->\n```sh a.sh\nmake\n```\n\n```sh\nls\n```\n\n  ```text\n  here\n  ```\n"
    )
    assert [(block.language, block.file, block.remark, block.said) for block in found] == [
        ("sh", "a.sh", "not run", "why"),
        ("sh", "", "", ""),
        ("text", "", "", ""),
    ]
    assert found[2].is_output and found[2].body == "here\n"
