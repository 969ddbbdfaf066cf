"""What a command line is, compared with what a real shell makes of it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windlass import limits
from windlass.core.commands import read
from windlass.core.simple_command import simple

# Anything that could make one word of two, or two commands of one.
_PIECES = [*"abX=~#!^%:,./-+@ \t\n;&|<>()[]{}*?$`\\'\"é", "''", "$IFS", "${X}", "$'a'", "a=b", "\u200b", "\u00a0", "1>"]
_RUN_SECONDS = 10


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with files for wildcards to find, and in `bin` the only programs there are."""
    box = tmp_path_factory.mktemp("box")
    for name in ("a", "b", "ab", "X"):
        (box / name).write_text("")
    (box / "bin").mkdir()
    _program(box, "show", 'printf "%s\\n" "$#" "$@" >> shown')
    _program(box, "victim", 'printf "x" >> ran')
    for name in ("env", "xargs", "timeout", "find", "cat"):
        (box / "bin" / name).symlink_to(shutil.which(name) or "/nowhere")
    for name in ("sh", "bash"):
        (box / "bin" / name).symlink_to("/bin/bash")
    return box


def _program(box: Path, name: str, script: str) -> None:
    file = box / "bin" / name
    file.write_text(f"#!/bin/bash\n{script}\n")
    file.chmod(0o755)


def run(box: Path, line: str) -> None:
    environment = {"PATH": str(box / "bin"), "X": "a b", "HOME": "/"}
    subprocess.run(
        ["/bin/bash", "-c", line], cwd=box, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=_RUN_SECONDS,
    )  # fmt: skip


def taken(file: Path) -> str:
    """What was written to it; gone afterwards."""
    if not file.exists():
        return ""
    text = file.read_text()
    os.remove(file)
    return text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=7))
def test_the_shell_runs_a_simple_command_with_exactly_its_words(box: Path, pieces: list[str]) -> None:
    """A28: an allow for one command would run another, or with other arguments than were compared."""
    line = "show " + "".join(pieces)
    words = simple(line)
    if words is not None:
        run(box, line)
        assert taken(box / "shown") == "\n".join([str(len(words) - 1), *words[1:], ""])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("git status", ("git", "status")),
        ("  git\t log  ", ("git", "log")),
        ("git commit -m 'two words'", ("git", "commit", "-m", "two words")),
        ("""echo "it's" 'a "b"' c'd'"e" ''""", ("echo", "it's", 'a "b"', "cde", "")),
        ('grep "a\\.b" f', ("grep", "a\\.b", "f")),
        ("git diff HEAD~1 a#b x=~", None),
        ("git diff HEAD~1 a#b x=1", ("git", "diff", "HEAD~1", "a#b", "x=1")),
        ("./run.sh über", ("./run.sh", "über")),
        ("echo 'a; b' \"c | d\"", ("echo", "a; b", "c | d")),
    ],
)
def test_the_words_of_a_simple_command(line: str, words: tuple[str, ...] | None) -> None:
    """People would be asked again and again for what they allowed."""
    assert simple(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "", " ", "a; b", "a && b", "a || b", "a | b", "a &", "a\nb", "a\n", "a > f", "a < f", "a 2>&1", "a <<E", "$a",
        "a $b", 'a "$b"', "a `b`", 'a "`b`"', "a $(b)", "(a)", "a (b)", "{ a; }", "a {b,c}", "a *", "a ?", "a [b]",
        "a ~", "a ~b/c", "# a", "a # b", "A=b c", "A+=b", "A[0]=b", "if a", "! a", "[[ a ]]", "a\\ b", 'a "\\$b"',
        "a 'b", 'a "b', "a\rb", "a\x1b[2Kb", "a\u200b", "a\u202eb", "a\u00a0b", "a\U000e0041", "'' b", "a$IFS",
        "while a", "a 'b\nc'",
    ],
)  # fmt: skip
def test_what_is_not_one_simple_command(line: str) -> None:
    """A28 A26: the shell would do something else with it than run one program with these words."""
    assert simple(line) is None


def test_a_line_that_nobody_would_read_is_not_simple() -> None:
    """Megabytes of a command would be taken apart for every rule, while everyone waits."""
    longest = "echo ".ljust(limits.COMMAND_CHARACTERS, "a")
    assert simple(longest) is not None
    assert simple(longest + "a") is None


def test_a_word_of_the_shells_own_language_is_no_program() -> None:
    """A28: `while ls` or `until rm` would be compared as if it were a program of that name."""
    told = subprocess.run(["/bin/bash", "-c", "compgen -k"], capture_output=True, text=True, timeout=_RUN_SECONDS)
    keywords = set(told.stdout.split())
    assert len(keywords) > 15
    wrong = {word for word in keywords if simple(f"{word} x") is not None}
    assert wrong <= {"time", "function", "coproc"}, "these three are programs that run others, for a rule"


# -- every command of a line ------------------------------------------------------------------------------------------

_HIDING_PLACES = [
    "{}", "true && {}", "true; {}", "false || {}", "true | {}", "true\n{}", "({})", "{{ {}; }}", "echo $({})",
    "echo `{}`", 'echo "$({})"', 'echo "`{}`"', "X=$({})", "if true; then {}; fi", "while {}; do break; done",
    "for i in 1; do {}; done", "case a in a) {};; esac", "f() {{ {}; }}; f", "function f {{ {}; }}; f", "A=b {}",
    "! {}", "time {}", "{} &", ">f {}", "2>&1 {}", "env {}", "env -i PATH=$PATH {}", "env A=b {}", "command {}",
    "exec {}", "eval {}", "eval '{}'", "sh -c '{}'", "bash -c '{}'", 'bash -c "{}"', "sh -c 'true; {}'",
    "echo '{}' | sh", "timeout 5 {}", "echo y | xargs {}", "find a -exec {} \\;", "cat <({})", "cat <<E\n$({})\nE",
    "bash <<< '{}'", "bash <<E\n{}\nE", "trap '{}' EXIT", "coproc {}; wait", "$(echo {})", "A='{}'; $A",
    "A=vic; B=tim; $A$B x", "v\\ictim x", "vic''tim x", "'victim' x", '"vic"tim x', "bin/victim x",
    "./bin/../bin/victim x", "bash -c 'bash -c \"{}\"'", "env sh -c 'A=b {}'", "echo $'\\''; {}; : \\'",
    "echo \"$'\"; {}; echo \"'\"", "cat <(true)#''; {}", "env -S'{}'", "env -iS'bin/{}'", "echo '{}' | sh -s y",
    "echo '{}' | bash -O extglob", "echo '{}' | bash -s -- -c", "victim&>f x", "victim &>>f x",
    "echo '{}' | xargs env",
]  # fmt: skip


@pytest.mark.parametrize("place", _HIDING_PLACES)
def test_a_command_is_found_wherever_it_is_run_from(box: Path, place: str) -> None:
    """A28: a rule against a command would be got around with two more words."""
    line = place.format("victim x")
    run(box, line)
    assert taken(box / "ran"), "the shell itself did not run it: this line shows nothing"
    reading = read(line)
    assert not reading.is_clear or [words for words in reading.commands if words[0] == "victim"]


@pytest.mark.parametrize("line", ["git rm victim", "echo 'victim x'", "ls victim", "echo a # victim", "A=victim true"])
def test_a_word_is_no_command(line: str) -> None:
    """A rule against a command would forbid to speak of it."""
    assert read(line).is_clear
    assert not [words for words in read(line).commands if words[0] == "victim"]


_SCRAPS = [
    "victim x", "vic", "tim", "''", "echo ", "true", " ", ";", "\n", "&&", "|", "(", ")", "$(", "`", "'", '"', "\\",
    "{ ", "; }", "if true; then ", "; fi", "env ", "sh -c ", "eval ", "A=", "$A", "<<E\n", "\nE\n", ">f ", "#",
    "case a in a) ", ";; esac", "$'", "&>f ", "<(true)", "xargs ",
]  # fmt: skip


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scraps=st.lists(st.sampled_from(_SCRAPS), max_size=9))
def test_no_line_that_runs_it_hides_it(box: Path, scraps: list[str]) -> None:
    """A28: some combination of quotes and operators would hide a command from the rule against it."""
    line = "".join(scraps)
    reading = read(line)
    if reading.is_clear and not [words for words in reading.commands if words[0] == "victim"]:
        run(box, line)
        assert taken(box / "ran") == ""
    for left in ("f", "ran"):
        (box / left).unlink(missing_ok=True)


@pytest.mark.parametrize(
    "line",
    [
        "$(" * 2_000,
        "`" * 2_001,
        "(" * 2_000,
        "sh -c '" * 500,
        "env " * 5_000,
        "; true" * 2_000,
        "x" * 5_000_000,
        '"$(' * 900,
        "a &>f " * 2_300,
        "A='b c' " * 2_000,
    ],
    ids=lambda line: line[:8],
)
def test_what_is_too_much_to_read_is_not_called_clear(line: str) -> None:
    """Something at its end would not be seen, or the server would stop for it (A32)."""
    assert not read(line).is_clear
