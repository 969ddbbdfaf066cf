"""Rules about commands: an allow is no wider than it reads, a deny no narrower (A28)."""

import pytest

from windlass.core.command_patterns import CommandLine
from windlass.core.policy import Policy, Rule, Ruling, fits


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git status", "git status"),
        ("git status", "  git   status "),
        ("git status*", "git status"),
        ("git status*", "git status --short src"),
        ("git *", "git log --oneline -5"),
        ("git *", "git switch -c new"),
        ("git -C sub *", "git -C sub log --oneline"),
        ("git*", "git log"),
        ("npm test*", "npm test"),
        ("npm test*", "npm test -- --watch=false"),
        ("npm test*", "npm test:unit"),
        ("npm test *", "npm test"),
        ("npm run * -- *", "npm run build -- --fast"),
        ("python -m pytest*", "python -m pytest -x tests"),
        ("ls -*", "ls -l -a src"),
        ("ls -l*", "ls -la src"),
        ("cat src/*", "cat src/a/b.py"),
        ("cat src/* *", "cat src/a src/b"),
        ("./scripts/*", "./scripts/build"),
        ("./scripts/* -*", "./scripts/build --fast all"),
        ("find *", "find . -name '*.py'"),
        ("git commit -m*", "git commit -m 'a; b && c | d'"),
        ("echo 'a b'", "echo 'a b'"),
        ("cp [ab].txt ?", "cp a.txt b"),
    ],
)
def test_an_allow_covers_what_it_says(pattern: str, line: str) -> None:
    """People would be asked for what they allowed, until they allow everything."""
    assert CommandLine(line).covered(pattern)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        # another command
        ("git status", "git stash"),
        ("git status", "git status -s"),
        ("git status*", "git -C /tmp status"),
        ("git status*", "./git status"),
        ("git status*", "GIT status"),
        ("npm test*", "npm"),
        ("", "ls"),
        ("*", "ls"),
        # more than one
        ("git status*", "git status && rm -rf x"),
        ("git status*", "git status; rm -rf x"),
        ("git status*", "git status | sh"),
        ("git status*", "git status & rm x"),
        ("git status*", "git status\nrm -rf x"),
        ("git *", "git status" + " && git status" * 60),
        # what the shell makes of it
        ("git status*", "git status $(rm x)"),
        ("git status*", "git status `rm x`"),
        ("git status*", "git status > .git/config"),
        ("git status*", "git status$IFS-s"),
        ("git status*", "git status *"),
        ("ls *", "ls ~root"),
        ("git status*", "GIT_PAGER=x git status"),
        ("git status*", "git status # safe"),
        ("git status*", "git status\u200b"),
        ("echo *", "echo {a,b}"),
        # options that change the program itself
        ("git *", "git -c core.pager=x log"),
        ("git *", "git --config-env=core.pager=X log"),
        ("git *", "git --exec-path=/tmp log"),
        ("git -*", "git -c core.pager=x log"),
        ("git*", "git -p log"),
        ("git -C sub *", "git -C sub -c core.pager=x log"),
        ("git -C sub *", "git -C sub config core.pager x"),
        ("npx *", "npx -c 'rm x'"),
        ("npx *", "npx --call 'rm x'"),
        ("npx prettier*", "npx prettier --cal='rm x'"),
        ("python *", "python -c 'x'"),
        ("make *", "make -j4 test"),
        ("python -u*", "python -u -c 'x'"),
        ("node *", "node -e 'x'"),
        # options that run another program, wherever they stand
        ("find *", "find . -exec rm '{}' ';'"),
        ("find *", "find . -name x -delete"),
        ("git log*", "git log --output=/etc/x"),
        ("git fetch*", "git fetch --upload-pa=x"),
        ("git grep*", "git grep -nOsh x"),
        ("git rebase*", "git rebase -x 'rm x' main"),
        ("git clone*", "git clone -u x y"),
        ("git *", "git config core.pager x"),
        ("git *", "git submodule foreach 'rm x'"),
        ("npm test*", "npm test --script-shell=./x"),
        ("make test*", "make test SHELL=./x"),
        ("make test*", "make test --eval=x"),
        ("go test*", "go test -exec ./x"),
        ("tar *", "tar xf a --checkpoint-action=exec=x"),
        ("tar *", "tar cIf ./x a.tar b"),
        ("git *", "git merge-index ./x -a"),
        ("split *", "split a --filter=./x"),
        ("wget *", "wget http://a --use-askpass=./x"),
        ("bat *", "bat a --paging=always --pager=./x"),
        ("sqlite3 *", "sqlite3 a '.shell x'"),
        ("poetry *", "poetry run x"),
        ("sort *", "sort a -o b"),
        ("rg *", "rg a --pre x"),
        # programs that run what they are given
        ("env *", "env X=1 ls"),
        ("sudo ls*", "sudo ls"),
        ("xargs *", "xargs rm"),
        ("sh *", "sh x"),
        ("/bin/sh *", "/bin/sh x"),
        ("timeout *", "timeout 5 ls"),
        ("ssh *", "ssh host ls"),
        ("sed *", "sed s/a/b/e f"),
        ("eval *", "eval ls"),
        # out of where it says
        ("cat src/*", "cat src/a ../secret"),
        ("cat src/*", "cat src/../../secret"),
        ("cat --file=src/*", "cat --file=src/../secret"),
        ("./scripts/*", "./scripts/../../bin/x"),
        ("./scripts/*", "./scripts/sub/x"),
        ("rm * build", "rm -rf build"),
    ],
)
def test_an_allow_covers_nothing_else(pattern: str, line: str) -> None:
    """A28: who allowed one command would find that another was run."""
    assert not CommandLine(line).covered(pattern)


@pytest.mark.parametrize(
    "line",
    [
        "rm x", "rm", "/bin/rm x", "cd a && rm -rf b", "true; rm x", "ls | xargs rm", "sudo rm x", "env A=b rm x",
        "sh -c 'rm x'", "bash -c 'cd a; rm x'", "echo $(rm x)", "echo \"`rm x`\"", "find . -exec rm {} +", "X=1 rm x",
        "(rm x)", "if a; then rm x; fi", "git -c alias.x='!rm x' x", "r\\m x", "'rm' x", "ls\nrm x", "time rm x",
        "nohup rm x &", "echo 'rm x' | sh", "X=rm; $X y", "rm$IFS-rf", "{rm,-rf,x}", "bash <<E\nrm x\nE",
        "python -c \"os.system('rm x')\"", "echo 'rm x", "eval r''m x", "rm " + "x" * 100_000,
    ],
    ids=lambda line: line[:30],
)  # fmt: skip
def test_a_deny_reaches_a_command_wherever_it_is(line: str) -> None:
    """A28: what the user forbade would happen two words further on."""
    assert Policy(allow=("*",), deny=("bash:rm *",)).decide("bash", line) == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "ls rm",
        "git rm x",
        "echo 'rm x'",
        "echo rm x",
        "grep rm f",
        "ls # rm x",
        "arm x",
        "rm.py x",
        "cat <<E\ntext\nE",
        "$X y",
    ],
)
def test_a_deny_reaches_nothing_else(line: str) -> None:
    """A rule that forbids too much is taken out, and then forbids nothing."""
    assert Policy(allow=("*",), deny=("bash:rm *",)).decide("bash", line) == "allow"


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("bash:git push*", "git commit -m \"$(cat <<'E'\nit's done\nE\n)\"", "allow"),
        ("bash:git push*", "git push <<E\nit's done\nE", "deny"),
        ("bash:*curl*", "cu''rl x", "deny"),
        ("bash:rm -rf *", "rm &>/dev/null -rf /", "deny"),
        ("bash:rm -rf *", "echo -rf / | xargs rm", "deny"),
        ("bash:rm -rf *", "GIT_SSH_COMMAND='rm -rf /' git fetch a", "deny"),
        ("bash:rm -rf *", "poetry run rm -rf /", "deny"),
        ("bash:rm -rf *", "tar cIf 'rm -rf /' a.tar b", "deny"),
        ("bash:rm -rf *", "split --filter='rm -rf /' a", "deny"),
        ("bash:rm -rf *", "sqlite3 a '.shell rm -rf /'", "deny"),
        ("bash:cat /etc/*", "echo 'cat /etc/passwd' | sh", "deny"),
        ("bash:curl --data=*", 'eval "$X curl --data=a"', "deny"),
        ("bash:git push*", "git -C a push", "deny"),
        ("bash:git push*", "cd a && /usr/bin/git --no-pager push", "deny"),
        ("bash:git push*", "git -C a commit -m push", "allow"),
        ("bash:rm *", "sh build.sh &>/dev/null", "allow"),
        ("bash:* --force*", "git push --force", "deny"),
        ("bash:* --force*", "echo 'x", "allow"),
        ("bash:* --force*", "git push --force 'x", "deny"),
        ("bash:*", "anything 'at all", "deny"),
        ("bash", "anything 'at all", "deny"),
        ("*:rm *", "cd a; rm x", "deny"),
        ("bash:", "ls", "allow"),
    ],
)
def test_what_cannot_be_read_is_denied_if_it_names_what_is(pattern: str, line: str, expected: Rule) -> None:
    """A28: either quotes hide a command from its rule, or a rule about one command forbids every long one."""
    assert Policy(allow=("*",), deny=(pattern,)).decide("bash", line) == expected


@pytest.mark.parametrize(
    ("policy", "line", "expected"),
    [
        (Policy(allow=("bash:git *",)), "git status", Ruling("allow", "bash:git *")),
        (Policy(allow=("bash:git *",)), "git status; rm x", Ruling("ask")),
        (Policy(allow=("bash",)), "git status; rm x", Ruling("allow", "bash")),
        (Policy(allow=("bash:*",)), "git status; rm x", Ruling("allow", "bash:*")),
        (Policy(allow=("b*:**",)), "git status; rm x", Ruling("allow", "b*:**")),
        (Policy(allow=("*",)), "git status; rm x", Ruling("allow", "*")),
        (Policy(allow=("bash:",)), "ls", Ruling("ask")),
        # An ask is looked for as widely as a deny.
        (Policy(allow=("bash",), ask=("bash:git push*",)), "cd a && git push", Ruling("ask", "bash:git push*")),
        (Policy(allow=("bash:git *",), ask=("bash:git push*",)), "git push", Ruling("ask", "bash:git push*")),
        (Policy(allow=("bash:git p*", "bash:git pu*"), deny=("edit",)), "git pull", Ruling("allow", "bash:git pu*")),
        (Policy(deny=("bash:rm*", "bash:rm -r*")), "rm -r x", Ruling("deny", "bash:rm -r*")),
    ],
)
def test_the_rule_that_decided_is_told(policy: Policy, line: str, expected: Ruling) -> None:
    """Nobody could find out which line of the config allowed a command, or why one asks."""
    assert policy.ruling("bash", line) == expected


@pytest.mark.parametrize(
    ("pattern", "tool", "resource", "expected"),
    [
        ("npm test*", "bash", "npm test -- -u", True),
        ("*", "bash", "npm test", False),
        ("n* test", "bash", "npm test", False),
        ("npm test*", "bash", "npm test && rm x", False),
        ("src/*", "edit", "src/a.py", True),
        ("src/*", "edit", "README.md", False),
        ("*", "edit", "README.md", True),
        ("npm *", "edit", "npm x; y", True),
    ],
)
def test_what_a_person_typed_is_about_one_tool(pattern: str, tool: str, resource: str, expected: bool) -> None:
    """B26 A28: a star typed in passing would let every command through for the rest of the session."""
    assert fits(pattern, tool, resource) is expected
