"""`windlass mailbox`: the messages between agents. Works on the data directory, so it also works without a server."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from windlass import limits
from windlass.cli.agent_store import agent_store
from windlass.cli.options import Function, ListingGroup, data_dir_option, directory_option, json_option
from windlass.cli.safe_text import exact, prose, shortened
from windlass.cli.terminal import Terminal
from windlass.ids import new_id

if TYPE_CHECKING:
    from windlass.wire.agents import MailKind

KINDS = ("task", "ask", "reply", "steer", "handoff")
_BODY_CHARACTERS = 80  # of a message in a table; `show --json` has all of it


def where(function: Function) -> Function:
    """-C and --data-dir: which project, and where its mailboxes are."""
    return directory_option(data_dir_option(function))


@click.group(cls=ListingGroup)
def mailbox() -> None:
    """See and send the messages between agents.

    \b
    Examples:
      windlass mailbox
      windlass mailbox send reviewer --from me "Please look at parser.py"
      windlass mailbox show reviewer
    """


@mailbox.command("list")
@where
@json_option
def list_mailboxes(directory: Path, data_dir: Path | None, as_json: bool) -> None:
    """List the mailboxes of a project and what is in them.

    \b
    Example:
      windlass mailbox list -C ~/project
    """
    with agent_store(data_dir) as store:
        found = {name: store.mailbox(directory, name).statistics() for name in store.mailboxes(directory)}
    terminal = Terminal()
    if as_json:
        terminal.json([{"session_id": name, **msgspec.to_builtins(statistics)} for name, statistics in found.items()])
    elif not found:
        terminal.status("No mailboxes here yet. `windlass mailbox send SESSION TEXT` makes one.")
    else:
        rows = [
            [exact(name), str(there.waiting), str(there.claimed), str(there.set_aside), str(there.bytes)]
            for name, there in found.items()
        ]
        terminal.table(["SESSION", "WAITING", "CLAIMED", "CORRUPT", "BYTES"], rows)


@mailbox.command("show")
@click.argument("session_id", metavar="SESSION")
@where
@json_option
def show_mailbox(session_id: str, directory: Path, data_dir: Path | None, as_json: bool) -> None:
    """Print the messages of a session in their order, without claiming them.

    \b
    Example:
      windlass mailbox show reviewer --json
    """
    with agent_store(data_dir) as store:
        found = store.mailbox(directory, session_id).list()
    terminal = Terminal()
    if as_json:
        terminal.json(found)
    elif not found:
        terminal.status(f"No messages wait for {exact(session_id)}.")
    else:
        rows = [
            [str(item.sequence), item.state, str(item.attempts), *_words(item.mail, item.problem)] for item in found
        ]
        terminal.table(["NUMBER", "STATE", "CLAIMS", "KIND", "FROM", "BODY"], rows)


def _words(mail: Any, problem: str) -> list[str]:
    if mail is None:
        return ["?", "?", exact(problem)]
    sender = mail.sender.session_id + (f" ({mail.sender.role})" if mail.sender.role else "")
    return [exact(mail.kind), exact(sender), shortened(exact(_body(mail)), _BODY_CHARACTERS)]


def _body(mail: Any) -> str:
    return mail.body if isinstance(mail.body, str) else msgspec.json.encode(mail.body).decode()


@mailbox.command("send")
@click.argument("session_id", metavar="SESSION")
@click.argument("text")
@click.option("--from", "sender", required=True, metavar="ID", help="The session that sends, for the answer.")
@click.option("--role", default=None, help="What the sender is to the receiver.")
@click.option("--kind", type=click.Choice(KINDS), default="task", show_default=True)
@click.option("--id", "mail_id", metavar="ID", help="Sending the same id again changes nothing. [default: a new one]")
@click.option("--correlation-id", metavar="ID", help="The message that this one answers.")
@click.option("--as-json", "body_is_json", is_flag=True, help="TEXT is JSON, and is the body as it is.")
@where
def send_mail(
    session_id: str,
    text: str,
    sender: str,
    role: str | None,
    kind: "MailKind",
    mail_id: str | None,
    correlation_id: str | None,
    body_is_json: bool,
    directory: Path,
    data_dir: Path | None,
) -> None:
    """Deliver TEXT (- for standard input) to SESSION, and print the message's id. It is safe when this returns.

    \b
    Example:
      windlass mailbox send reviewer --from me "Please look at parser.py"
    """
    from windlass.wire.agents import Mail, MailFrom

    if text == "-":
        text = sys.stdin.buffer.read(limits.MAIL_BYTES + 1).decode("utf-8", "replace")
    mail = Mail(
        id=mail_id or new_id("mail"),
        sender=MailFrom(sender, role),
        kind=kind,
        body=_json(text) if body_is_json else text,
        created_at=int(time.time()),
        correlation_id=correlation_id,
    )
    with agent_store(data_dir) as store:
        sequence = store.mailbox(directory, session_id).deliver(mail)
    terminal = Terminal()
    terminal.line(exact(mail.id))
    terminal.status(f"Delivered to {exact(session_id)} as number {sequence}.")


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"TEXT is no JSON: {error}.") from error


@mailbox.command("claim")
@click.argument("session_id", metavar="SESSION")
@click.option("--limit", type=click.IntRange(1, limits.MAILBOX_CLAIMS), default=1, show_default=True)
@click.option("--lease", type=float, default=limits.MAILBOX_LEASE_SECONDS, show_default=True, help="Seconds.")
@where
def claim_mail(session_id: str, limit: int, lease: float, directory: Path, data_dir: Path | None) -> None:
    """Take the oldest messages and print each as one line of JSON, with the `token` that `ack` wants.

    Nobody else gets them until the lease is over. Code 1 if no message waits.

    \b
    Example:
      windlass mailbox claim reviewer --lease 300
    """
    with agent_store(data_dir) as store:
        claims = store.mailbox(directory, session_id).claim(limit, lease)
    for claim in claims:
        Terminal().json(claim)
    if not claims:
        Terminal().status(f"No messages wait for {exact(session_id)}.")
        raise SystemExit(1)


@mailbox.command("ack")
@click.argument("session_id", metavar="SESSION")
@click.argument("tokens", metavar="TOKEN...", nargs=-1, required=True)
@where
def ack_mail(session_id: str, tokens: tuple[str, ...], directory: Path, data_dir: Path | None) -> None:
    """Remove claimed messages: they were dealt with.

    \b
    Example:
      windlass mailbox ack reviewer "$TOKEN"
    """
    with agent_store(data_dir) as store:
        store.mailbox(directory, session_id).ack(*tokens)
    Terminal().status(f"Acknowledged {len(tokens)}.")


@mailbox.command("release")
@click.argument("session_id", metavar="SESSION")
@click.argument("tokens", metavar="[TOKEN]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that are claimed, whoever has them.")
@click.option("--reason", default="", help="Kept with the message if it was claimed too often.")
@where
def release_mail(
    session_id: str, tokens: tuple[str, ...], everything: bool, reason: str, directory: Path, data_dir: Path | None
) -> None:
    """Give claimed messages back: the next claim gets them again.

    \b
    Example:
      windlass mailbox release reviewer "$TOKEN" --reason "its file is not there yet"
    """
    if everything == bool(tokens):
        raise click.UsageError("Name the TOKENs to give back, or say --all.")
    with agent_store(data_dir) as store:
        box = store.mailbox(directory, session_id)
        count = box.recover(everything=True) if everything else len(tokens)
        if not everything:
            box.release(*tokens, reason=reason)
    Terminal().status(f"Gave back {count}.")


@mailbox.command("corrupt")
@click.argument("session_id", metavar="SESSION")
@click.option("--discard", metavar="NAME", help="Delete this one for good.")
@where
@json_option
def corrupt_mail(session_id: str, discard: str | None, directory: Path, data_dir: Path | None, as_json: bool) -> None:
    """List the messages that were set aside, with the reason, or delete one of them.

    \b
    Example:
      windlass mailbox corrupt reviewer
    """
    with agent_store(data_dir) as store:
        box = store.mailbox(directory, session_id)
        if discard is not None:
            box.discard(discard)
        found = box.corrupt()
    terminal = Terminal()
    if as_json:
        terminal.json(found)
        return
    for item in found:
        terminal.line(f"{exact(item.name)}: {prose(item.reason)}")
    if not found:
        terminal.status(f"Nothing is set aside for {exact(session_id)}.")
