"""Which commands run another one that they are given: every program and option that is known, with a real use of it."""

import pytest

from windlass.core.programs import plainly, runs_others, takes_code

# One word each, whatever follows it.
ALWAYS = """
sh bash dash ash zsh ksh mksh fish csh tcsh rbash pwsh env sudo doas su runuser pkexec setpriv chroot nsenter unshare
systemd-run capsh busybox toybox xargs parallel nice ionice chrt taskset nohup setsid stdbuf unbuffer timeout time watch
flock script strace ltrace perf valgrind exec eval command builtin source . trap coproc function ssh rsh mosh at batch
crontab screen tmux dbus-run-session xvfb-run fakeroot proot firejail bwrap entr socat nc ncat netcat nix-shell
awk gawk mawk nawk sed gsed ed ex vi vim nvim emacs expect tclsh gdb osascript sqlite3
"""

# Uses that run a command, load code, or write where the program else only reads.
RUNNING = """
git bisect run ./x
git config core.pager ./x
git daemon --export-all
git difftool HEAD
git filter-branch --tree-filter ./x
git for-each-repo --keep-going
git hook run pre-commit
git instaweb --httpd=./x
git merge-index ./x -a
git mergetool
git send-email a.patch
git submodule foreach ./x
git -C elsewhere bisect run ./x
git --git-dir elsewhere status
git --work-tree=elsewhere status
git --namespace x bisect run ./x
git --exec-path elsewhere status
git -c core.pager=./x log
git --config-env=core.pager=X log
git clone --config core.pager=./x a b
git clone -c core.pager=./x a b
git clone -u ./x a b
git clone --upload-pack ./x a b
git clone --template=elsewhere a b
git push --receive-pack=./x
git push --exec=./x
git rebase -x ./x HEAD
git grep -O./x word
git grep --open-files-in-pager=./x word
git diff --ext-diff
git diff --extcmd=./x
git diff --output=elsewhere
git log --textconv
npm config set script-shell ./x
npm exec x
npm explore x
npm set script-shell ./x
npm x y
npm -C elsewhere exec x
npm --prefix elsewhere exec x
pnpm config set x y
pnpm dlx x
pnpm exec x
yarn config set x y
yarn dlx x
yarn exec x
bun x y
bun exec y
docker exec web ls
docker run image
docker -H tcp://elsewhere exec web ls
docker -c other exec web ls
docker --context other run image
docker --host tcp://elsewhere run image
podman exec web ls
podman run image
kubectl exec pod
kubectl run pod
pipx run x
poetry run x
pdm run x
pipenv run x
hatch run x
conda run x
nix develop
nix run x
nix shell
mise exec x
mise x y
direnv exec . x
uv run x
uv tool run x
npm test --call ./x
npx -c ./x
npx -C elsewhere x
pnpm test --dir elsewhere
pnpx --shell x
yarn --cwd elsewhere test
bun --eval code
bunx --exec x
npm test --globalconfig elsewhere
npm test --node-options=--require=./x
npm test --package x
npm test --prefix elsewhere
npm test --script-shell ./x
npm test --userconfig elsewhere
find . -delete
find . -exec rm {} ;
find . -execdir rm {} ;
find . -fls out
find . -fprint out
find . -fprint0 out
find . -fprintf out %p
find . -ok rm {} ;
find . -okdir rm {} ;
fd -x rm
fd -X rm
fd --exec rm
fd --exec-batch rm
fdfind -x rm
fdfind -X rm
fdfind --exec-batch rm
rg --pre ./x word
rg --hostname-bin ./x word
hg --config extensions.x=./x.py log
svn --config-option x log
svn diff --diff-cmd ./x
svn update --diff3-cmd ./x
svn commit --editor-cmd ./x
go test -exec ./x
go test --exec ./x
go build -modfile elsewhere
go build --modfile elsewhere
go build -overlay elsewhere
go build --overlay elsewhere
go build -toolexec ./x
go build --toolexec ./x
go vet -vettool ./x
go vet --vettool ./x
cargo build --config build.rustc=./x
make -C elsewhere
make -E code
make -I elsewhere
make -f elsewhere
make --directory elsewhere
make --eval code
make --file elsewhere
make --include-dir elsewhere
make --makefile elsewhere
make SHELL=./x
gmake -C elsewhere
gmake -f elsewhere
gmake --directory elsewhere
gmake --eval code
gmake --file elsewhere
gmake --include-dir elsewhere
gmake --makefile elsewhere
gmake SHELL=./x
cmake -E rm a
cmake -P script.cmake
tar -xF ./x
tar -xI ./x
tar xI ./x a.tar
tar --checkpoint-action=exec=./x
tar --info-script=./x
tar --new-volume-script=./x
tar --rmt-command=./x
tar --rsh-command=./x
tar --to-command=./x
tar --use-compress-program=./x
rsync -e ./x a b
rsync --rsh=./x a b
rsync --rsync-path=./x a b
scp -o ProxyCommand=./x a b
scp -S ./x a b
sftp -D ./x a
sftp -o ProxyCommand=./x a
sftp -S ./x a
zip -T a.zip
zip --test a.zip
zip a.zip --unzip-command ./x
split --filter=./x a
wget -e use_askpass=./x u
wget --config=elsewhere u
wget --execute x u
wget --use-askpass=./x u
bat --pager ./x a
ag --pager ./x a
mapfile -C ./x a
readarray -C ./x a
sort -o out a
sort --compress-program=./x a
sort --output=out a
man -H./x ls
man -P ./x ls
man -X ls
man --html=./x ls
man --pager=./x ls
tree -o out
""".strip().splitlines()  # fmt: skip

HARMLESS = """
git status
git -C elsewhere log
git log --oneline
git stash
git clone a b
npm test
docker ps
docker -H exec ps
podman ps
nix build
uv lock
find . -name a
fd word
rg word
hg log
svn log
go build
cargo build
make
make all
gmake all
cmake -S . -B build
tar -tf a.tar
tar tf a.tar
tar
rsync -a a b
scp a b
sftp host
zip a.zip a
split a
wget u
bat a=b
sort -u a
man ls
tree -L 1
ls -l
cat exec
echo run
/bin/ls
""".strip().splitlines()


def test_a_program_that_runs_what_it_is_given_is_known() -> None:
    """A28: an allow of `program *` would allow everything."""
    assert [name for name in ALWAYS.split() if not runs_others((name, "x"))] == []
    assert [name for name in ALWAYS.split() if not runs_others((f"/usr/bin/{name}",))] == []


def test_a_use_that_runs_another_command_is_known() -> None:
    """A28: an allow of the program would run what it was never meant for."""
    assert [line for line in RUNNING if not runs_others(line.split(" "))] == []


def test_a_use_that_runs_nothing_else_stays_allowed() -> None:
    """People would be asked for every command, and would learn to say yes without reading."""
    assert [line for line in HARMLESS if runs_others(line.split(" "))] == []


def test_a_letter_that_is_not_known_to_run_anything_stays_allowed() -> None:
    """Every option would be asked about, and the list of those that matter would mean nothing."""
    programs = "make gmake tar rsync scp sftp zip wget mapfile readarray sort tree cmake npm git".split()  # noqa: SIM905
    assert [name for name in programs if runs_others((name, "-X", "a"))] == []
    assert not runs_others(("git", "--config-x"))


@pytest.mark.parametrize("cut", ["--exec-b", "--exec", "--ex"])
def test_a_long_option_is_known_when_it_is_cut_short(cut: str) -> None:
    """Most programs take an option's beginning for it."""
    assert runs_others(("fd", cut, "rm"))


@pytest.mark.parametrize("words", [("fd", "--"), ("fd", "-"), ("git", "-c", "colour"), ("rg", "-pre"), ("tar", "")])
def test_what_only_looks_like_such_an_option_is_none(words: tuple[str, ...]) -> None:
    """The end of the options, a name of standard input, and a value that is no setting run nothing."""
    assert not runs_others(words)


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("/usr/bin/git -C a -c b.c=d log -1", "git log -1"),
        ("git --git-dir a --work-tree b --namespace c --exec-path d log", "git log"),
        ("npm --prefix a -C b test", "npm test"),
        ("docker --host a --context b -H c -c d ps", "docker ps"),
        ("git --no-pager log", "git log"),
        ("ls -l a", "ls -l a"),
        ("git -C", "git"),
    ],
)
def test_a_rule_is_compared_with_the_command_as_people_write_it(line: str, plain: str) -> None:
    """`git -C . push` would pass a rule that denies `git push *`."""
    assert plainly(line.split(" ")) == tuple(plain.split(" "))


@pytest.mark.parametrize(
    "line",
    [
        *("python3 a.py", "pypy a.py", "node a.js", "deno run a.ts", "bun a.ts", "perl -e x", "ruby a.rb", "php a.php"),
        *("lua a.lua", "Rscript a.R", "julia a.jl", "xargs rm", "parallel rm", "awk x", "sed s/a/b/e", "sqlite3 a.db"),
        *("bash", "bash script", "bash -s", "sh -cs x", "bash --login script", "bash --norc"),
    ],
)
def test_code_in_another_language_is_not_read_as_a_command(line: str) -> None:
    """A deny rule would be thought to have looked into it."""
    assert takes_code(line.split(" "))


@pytest.mark.parametrize("line", ["bash -c ls", "sh -ec ls", "env ls", "ls", "cat python"])
def test_what_can_be_read_is_read(line: str) -> None:
    """A command in quotes would be hidden from the rules although it stands there."""
    assert not takes_code(line.split(" "))
