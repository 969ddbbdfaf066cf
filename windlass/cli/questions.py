"""`windlass questions`: what agents ask people, and the answers."""

from pathlib import Path

import click

from windlass.cli.answering import described, read_answer
from windlass.cli.choosing import choose
from windlass.cli.connection import opened, run_async
from windlass.cli.options import ListingGroup, ServerOptions, directory_option, json_option, server_options
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal
from windlass.client import Invalid, QuestionBatch, QuestionResponse

_TOO_LATE = "Someone else answered first, or it was withdrawn. Nothing was changed."


@click.group(cls=ListingGroup)
def questions() -> None:
    """See what agents ask in a workspace, and answer it.

    \b
    Examples:
      windlass questions
      windlass questions answer ask_2c26 yes
      windlass questions cancel ask_2c26
    """


@questions.command("list")
@directory_option
@json_option
@server_options
def list_questions(directory: Path, as_json: bool, server: ServerOptions) -> None:
    """List what waits for an answer.

    \b
    Example:
      windlass questions list -C ~/project
    """

    async def work() -> list[QuestionBatch]:
        async with opened(server, directory) as workspace:
            return await workspace.questions()

    pending = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(pending)
        return
    for batch in pending:
        terminal.heading(exact(batch.id))
        for line in described(batch):
            terminal.line(line)
    if not pending:
        terminal.status("Nothing waits for an answer.")


@questions.command("answer")
@click.argument("batch_id", metavar="ID")
@click.argument("answers", metavar="ANSWER...", nargs=-1, required=True)
@directory_option
@server_options
def answer(batch_id: str, answers: tuple[str, ...], directory: Path, server: ServerOptions) -> None:
    """Answer the questions of a batch, one ANSWER for each, in their order.

    yes or no; the number of a choice (several: "1,3"); or words of your own.

    \b
    Example:
      windlass questions answer ask_2c26 yes 2 "Call it anchor"
    """

    async def work() -> bool:
        async with opened(server, directory) as workspace:
            pending = {batch.id: batch for batch in await workspace.questions()}
            chosen = pending[choose(batch_id, list(pending), "pending question")]
            return await workspace.answer_questions(chosen.id, _responses(chosen, answers))

    if not run_async(work()):
        raise click.ClickException(_TOO_LATE)
    Terminal().status("Answered.")


def _responses(batch: QuestionBatch, answers: tuple[str, ...]) -> list[QuestionResponse]:
    if len(answers) != len(batch.questions):
        counts = f"Questions: {len(batch.questions)}, answers: {len(answers)}."
        raise Invalid(f"{counts} Give one for each, in their order; put quotes around several words.")
    return [read_answer(question, text) for question, text in zip(batch.questions, answers, strict=True)]


@questions.command("cancel")
@click.argument("batch_id", metavar="[ID]", default="")
@click.option("--all", "every", is_flag=True, help="Everything that waits in the workspace.")
@directory_option
@server_options
def cancel(batch_id: str, every: bool, directory: Path, server: ServerOptions) -> None:
    """Decline to answer; the agent is told so and goes on.

    \b
    Example:
      windlass questions cancel ask_2c26
    """
    if bool(batch_id) == every:
        raise click.UsageError("Say which one by its ID, or --all.", click.get_current_context())

    async def work() -> bool:
        async with opened(server, directory) as workspace:
            pending = [batch.id for batch in await workspace.questions()]
            return await workspace.cancel_questions("" if every else choose(batch_id, pending, "pending question"))

    if not run_async(work()):
        raise click.ClickException("Nothing waits for an answer." if every else _TOO_LATE)
    Terminal().status("Declined.")
