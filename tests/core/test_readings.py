"""Exactly which commands are read out of a line, and whether that is said to be all of them.

An X stands where a character of the shell's language could be mistaken for a letter.
"""

import pytest

from windlass import limits
from windlass.core.commands import Reading, read

CLEAR = {
    "ls": "ls",
    "": "",
    "  ls \t -l  ": "ls -l",
    "ls;pwd": "ls | pwd",
    "ls&pwd": "ls | pwd",
    "ls\npwd": "ls | pwd",
    "ls|pwd": "ls | pwd",
    "ls && pwd || id": "ls | pwd | id",
    "lsXpwd": "lsXpwd",
    "a)b": "a | b",
    "(ls) pwd": "ls | pwd",
    "(ls; (pwd)) id": "ls | pwd | id",
    "ls # pwd; id": "ls",
    "ls # pwd\nid": "ls | id",
    "ls a#b": "ls a#b",
    "ls > file": "ls",
    "ls >file pwd": "ls pwd",
    "ls 2>&1 pwd": "ls pwd",
    "ls 2> file pwd": "ls pwd",
    "ls X> file pwd": "ls X pwd",
    "ls >X pwd": "ls pwd",
    "ls >>file pwd": "ls pwd",
    "ls >|file pwd": "ls pwd",
    "ls <>file pwd": "ls pwd",
    "ls &>file pwd": "pwd | ls pwd",
    "ls &>file": "ls",
    "ls a &>file b": "b | ls a b",
    "cat <(ls) pwd": "ls | cat [] pwd",
    "cat <(ls)X": "ls | cat X",
    "ls 'a b' c": "ls [a b] c",
    "ls ''": "ls []",
    'ls ""': "ls []",
    'ls "a b" c': "ls [a b] c",
    'ls "aXb"': "ls aXb",
    'ls "a\\"b"': 'ls a"b',
    'ls "a\\$b"': "ls a$b",
    'ls "a\\Xb"': "ls a\\Xb",
    'ls "a\\nb"': "ls a\\nb",
    'ls "a\\\nb"': "ls ab",
    "ls a\\ b": "ls [a b]",
    "ls a\\\nb": "ls ab",
    "ls $X": "ls $X",
    'ls "$X"': "ls $X",
    "ls $(pwd) c": "pwd | ls [] c",
    'ls "$(pwd)" c': "pwd | ls [] c",
    "ls `pwd` c": "pwd | ls [] c",
    "ls $'a\\'b' c": "ls a'b c",
    'ls "$\'a"': "ls $'a",
    "ls *.py": "ls *.py",
    "ls {a,b}": "ls {a,b}",
    "ls {}": "ls {}",
    "{ ls; }": "ls",
    "{\tls; }": "ls",
    "{\nls; }": "ls",
    "A=b ls": "ls",
    "A=b": "",
    "A[1]+=b ls": "ls",
    "A-B=c ls": "A-B=c ls",
    "if ls; then pwd; fi": "ls | pwd",
    "! ls": "ls",
    "A='pwd x' ls": "pwd x | ls",
    "env ls -l": "env ls -l | ls -l | -l",
    "env A=b ls": "env A=b ls | ls",
    "bash -c 'pwd x'": "bash -c [pwd x] | -c [pwd x] | [pwd x] | pwd x",
    "git -C a log": "git -C a log | git log",
    "/bin/ls a": "/bin/ls a | ls a",
    "ls ls; ls ls": "ls ls",
    "ls >": "ls",
    "ls 2>&": "ls",
}

UNCLEAR = {
    "ls 'a": "ls a",
    'ls "a': "ls a",
    "ls $'a": "ls a",
    "ls (pwd": "ls | pwd",
    "ls $(pwd": "pwd | ls []",
    "ls `pwd": "pwd | ls []",
    "ls \\": "ls []",
    "ls \\`": "ls `",
    "cat << X": "cat",
    "cat <<< X": "cat",
    "$A x": "$A x",
    "$(ls) x": "ls | [] x",
    "l* x": "l* x",
    "l? x": "l? x",
    "l[s] x": "l[s] x",
    "{l,s} x": "{l,s} x",
    "$'ls' x": "ls x",
    "a{ b": "a{ b",
    "python x": "python x",
    "bash x": "bash x | x",
    "env $A": "env $A | $A",
    "env l? x": "env l? x | l? x | x",
    "A='cat <<X' ls": "cat | ls",
}


def shown(reading: Reading) -> str:
    """Commands between bars; a word that is empty or has blanks in brackets."""
    words = [[f"[{word}]" if not word or " " in word else word for word in command] for command in reading.commands]
    return " | ".join(" ".join(command) for command in words)


@pytest.mark.parametrize("line", CLEAR, ids=repr)
def test_a_line_that_can_be_followed_is_read_whole(line: str) -> None:
    """A28: a rule would be compared with other words than the shell runs."""
    reading = read(line)
    assert (shown(reading), reading.is_clear) == (CLEAR[line], True)


@pytest.mark.parametrize("line", UNCLEAR, ids=repr)
def test_a_line_that_cannot_be_followed_says_so(line: str) -> None:
    """A28: what is hidden in it would be taken for allowed."""
    reading = read(line)
    assert shown(reading) == UNCLEAR[line]
    assert reading.is_clear is False


def nested(line: str) -> str:
    """A command that runs this line."""
    quoted = line.replace("\\", "\\\\").replace('"', '\\"')
    return f'env -S "{quoted}"'


def test_the_deepest_line_that_is_followed_is_followed_whole() -> None:
    """A32: a bound that is off by one would hide the last command, or refuse what people write."""
    depth = limits.COMMAND_DEPTH
    deep = read("(" * depth + "ls" + ")" * depth)
    assert (deep.commands, deep.is_clear) == ((("ls",),), True)
    assert not read("(" * (depth + 1) + "ls" + ")" * (depth + 1)).is_clear
    inside = "ls x"
    for _ in range(depth):
        inside = nested(inside)
    assert read(inside).is_clear and ("ls", "x") in read(inside).commands
    assert not read(nested(inside)).is_clear
    wide = read("ls" + " &>f a" * depth)
    assert wide.is_clear and not read("ls" + " &>f a" * (depth + 1)).is_clear


def test_the_longest_line_that_is_read_is_read() -> None:
    """A32: the same, for its length."""
    longest = "ls ".ljust(limits.COMMAND_CHARACTERS, "a")
    assert read(longest).is_clear and not read(longest + "a").is_clear
    many = "; ".join(f"c{number}" for number in range(limits.COMMAND_PARTS))
    assert read(many).is_clear and not read(many + "; one-more").is_clear
