"""The page's scripts and styles as one each. That the page works so is what every test in a browser shows."""

import pytest

from windlass.server.page_files import PAGE_DIRECTORY, PageFiles
from windlass.server.page_joined import joined, joined_scripts

INDEX = """<link rel="stylesheet" href="/page/a.css">
<link rel="stylesheet" href="/page/b.css">
<link rel="modulepreload" href="/page/low.js">
<script type="module" src="/page/main.js"></script>
"""
FILES = {
    "main.js": 'import { one, two as second } from "./low.js";\none(second);\n',
    "low.js": "const hidden = 1;\nexport function one() {}\nexport const two = hidden;\n",
    "shared_worker.js": 'import {\n  one,\n} from "./low.js";\none();\n',
    "a.css": "a { color: red }",
    "b.css": "b { color: blue }",
}


def test_the_front_page_asks_for_one_script_and_one_style() -> None:
    """A first visit from a phone would be seventy requests, six at a time, some only after others were read."""
    page, made = joined(INDEX, FILES)
    assert page == (
        '    <link rel="stylesheet" href="/page/all.css">\n<script type="module" src="/page/all.js"></script>\n'
    )
    assert made["all.css"] == "a { color: red }\nb { color: blue }"
    assert sorted(made) == ["all.css", "all.js", "shared_worker.js"]


def test_a_module_comes_after_what_it_imports_and_keeps_its_names_to_itself() -> None:
    """Two modules that each have a `hidden` would be one, or the first line would fail."""
    script = joined_scripts("main", FILES)
    low, main = script.index("const module_low = (() => {"), script.index("const module_main = (() => {")
    assert low < main
    assert "const { one, two: second } = module_low;" in script
    assert "return { one, two };" in script


@pytest.mark.parametrize(
    "line",
    [
        'import "./low.js";',
        'import low from "./low.js";',
        'import * as low from "./low.js";',
        'import { one } from "/elsewhere.js";',
        "export default one;",
        "export let changing = 1;",
        "export { one };",
        "const here = import.meta.url;",
    ],
)
def test_what_cannot_be_joined_is_refused_by_name(line: str) -> None:
    """The page would fail in the browser, with a line of a file that nobody wrote."""
    with pytest.raises(ValueError, match=r"main\.js cannot be joined"):
        joined_scripts("main", {**FILES, "main.js": line})


def test_every_script_of_ours_is_in_the_page_or_its_worker_or_stands_alone() -> None:
    """A module that nobody loads would be shipped, and looked after, for nothing."""
    made = PageFiles().current().joined
    together = made["all.js"].content + made["shared_worker.js"].content
    names = {path.stem for path in PAGE_DIRECTORY.glob("*.js")}
    assert {name for name in names if f"// -- {name}.js\n".encode() not in together} == {"theme"}
