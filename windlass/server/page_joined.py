"""The page's scripts joined into one, and its styles: a first visit is a handful of requests and not seventy.

Joining is no build step. It is done in memory from the files as they are, and knows just the few forms of `import` and
`export` that they use; anything else is refused by name. `/page/index.html` still loads every file by itself, for
whoever works on them.
"""

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter

SCRIPT, STYLE = "all.js", "all.css"  # what they are called once joined
_WORKER = "shared_worker"  # joined under its own name, which the page's policy for scripts knows
_IMPORT = re.compile(r'^import \{([^{}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*|\bimport\.meta\b", re.MULTILINE)
_STYLE_LINE = re.compile(r'^ *<link rel="stylesheet" href="/page/([\w.]+)">\n', re.MULTILINE)
_PRELOAD_LINE = re.compile(r'^ *<link rel="modulepreload" href="[^"]*">\n', re.MULTILINE)
_SCRIPT_TAG = re.compile(r'<script type="module" src="/page/(\w+)\.js">')


def joined(index: str, files: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The front page that asks for joined files, and those files by name."""
    entry = _SCRIPT_TAG.search(index)
    styles = _STYLE_LINE.findall(index)
    if entry is None or not styles:
        return index, {}
    page = _PRELOAD_LINE.sub("", index)
    # One in the place of the first: what comes later in the page still overrides it.
    page = _STYLE_LINE.sub(f'    <link rel="stylesheet" href="/page/{STYLE}">\n', page, count=1)
    page = _STYLE_LINE.sub(lambda line: line[0] if line[1] == STYLE else "", page)
    page = page.replace(entry[0], f'<script type="module" src="/page/{SCRIPT}">')
    scripts = {SCRIPT: joined_scripts(entry[1], files), f"{_WORKER}.js": joined_scripts(_WORKER, files)}
    return page, {**scripts, STYLE: "\n".join(files[name] for name in styles)}


def joined_scripts(entry: str, files: Mapping[str, str]) -> str:
    """Every module that `entry` needs as a function of its own, each after those that it imports."""
    needs: dict[str, list[str]] = {}
    missing = [entry]
    while missing:
        name = missing.pop()
        needs[name] = [needed for _, needed in _IMPORT.findall(files[f"{name}.js"])]
        missing += [needed for needed in needs[name] if needed not in needs]
    return "\n".join(_as_function(name, files[f"{name}.js"]) for name in TopologicalSorter(needs).static_order())


def _as_function(name: str, text: str) -> str:
    exported = _EXPORT.findall(text)
    # A name that is imported stands for one that never changes afterwards: only such are exported.
    text = _IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = module_{found[2]};", text)
    text = _EXPORT.sub("", text)
    if other := _OTHER.search(text):
        raise ValueError(f"{name}.js cannot be joined with the others: {other[0]}")
    return f"// -- {name}.js\nconst module_{name} = (() => {{\n{text}\nreturn {{ {', '.join(exported)} }};\n}})();\n"
