"""Questions an agent puts to people, shown at the terminal and answered there, one after the other.

Everyone attached is asked, and the first to answer the whole batch answers it: what is typed here is kept until the
last question of a batch has its answer, and then sent at once. Somebody else may be faster; that is said, and is no
error.
"""

import msgspec

from windlass import limits
from windlass.cli.asking import who_is
from windlass.cli.choosing import choose
from windlass.cli.safe_text import exact, shortened
from windlass.cli.terminal import Terminal
from windlass.client import (
    Invalid,
    Question,
    QuestionBatch,
    QuestionNotification,
    QuestionResponse,
    StreamEvent,
    WindlassError,
    WorkspaceHandle,
)

YES_NO = {"y": True, "yes": True, "n": False, "no": False}


class QuestionBatches:
    """The batches that wait, of one session or (session "") of the whole workspace."""

    def __init__(self, workspace: WorkspaceHandle, terminal: Terminal, hint: str, session_id: str = "") -> None:
        self.pending: dict[str, QuestionBatch] = {}
        self.shown = ""  # the session on the screen: a question of another one says so
        self.asked = 0
        self._workspace = workspace
        self._terminal = terminal
        self._hint = hint
        self._session_id = session_id
        self._answers: dict[str, list[QuestionResponse]] = {}  # by batch: what was typed so far

    @property
    def asks_yes_or_no(self) -> bool:
        """Whether a bare yes or no could be meant for a question."""
        return any(self._next(batch).type == "yes_no" for batch in self.pending.values())

    def take(self, event: StreamEvent) -> None:
        """Notice what an event says about questions."""
        try:
            if event.kind == "hello":
                self._start_over(msgspec.convert(event.payload.get("questions", []), list[QuestionBatch]))
            elif event.kind == "question_batch_request":
                self._ask(msgspec.convert(event.payload, QuestionBatch))
            elif event.kind == "question_batch_notification":
                self._settle(msgspec.convert(event.payload, QuestionNotification))
        except msgspec.ValidationError:
            # The facts of a deleted session come without their bodies.
            return

    # -- what is typed --

    async def answer(self, text: str) -> None:
        """Take the answer to the next question: `[ID] ANSWER`. The last one of a batch sends them all."""
        batch, said = self._meant(text)
        response = read_answer(self._next(batch), said)
        answers = self._answers.setdefault(batch.id, [])
        answers.append(response)
        if len(answers) < len(batch.questions):
            for line in _question_lines(batch, len(answers)):
                self._terminal.status(line, fg="yellow")
            return
        del self._answers[batch.id]
        await self._send(batch, answers)

    async def _send(self, batch: QuestionBatch, answers: list[QuestionResponse]) -> None:
        try:
            decided = await self._workspace.answer_questions(batch.id, answers)
        except WindlassError as error:
            self._terminal.status(f"The answer was not taken: {exact(error.message)}", fg="red")
            return
        self._over(batch.id, decided)

    async def decline(self, text: str) -> None:
        """Give no answer: `[ID]`. The agent is told so."""
        batch, _ = self._meant(text)
        self._over(batch.id, await self._workspace.cancel_questions(batch.id))

    def _meant(self, text: str) -> tuple[QuestionBatch, str]:
        """The batch that is named, or the only one there is; and the rest of the text."""
        first, _, rest = text.partition(" ")
        if first and any(id.startswith(first) for id in self.pending) and first.startswith("ask_"):
            return self.pending[choose(first, list(self.pending), "question")], rest.strip()
        if len(self.pending) == 1:
            return next(iter(self.pending.values())), text
        return self.pending[choose("", list(self.pending), "question")], text

    def _next(self, batch: QuestionBatch) -> Question:
        return batch.questions[len(self._answers.get(batch.id, ()))]

    def _over(self, batch_id: str, decided: bool) -> None:
        self._forget(batch_id)
        if not decided:
            self._terminal.status("Too late: it was answered or withdrawn before.", fg="yellow")

    # -- what the stream brings --

    def _start_over(self, batches: list[QuestionBatch]) -> None:
        # After a reconnect the server's list is the truth: an answer given meanwhile was not seen here.
        for id in set(self.pending) - {batch.id for batch in batches}:
            self._forget(id)
        for batch in batches:
            self._ask(batch)

    def _ask(self, batch: QuestionBatch) -> None:
        mine = self._session_id in ("", batch.session_id, batch.root_session_id)
        if not mine or not batch.questions or batch.id in self.pending:
            return
        self.pending[batch.id] = batch
        self.asked += 1
        if self.shown and batch.session_id != self.shown:
            self._terminal.status(f"In another session, {exact(batch.session_id)}:", fg="yellow")
        for line in described(batch):
            self._terminal.status(line, fg="yellow")
        self._terminal.status(f"  {self._hint.format(id=exact(batch.id))}", fg="yellow")

    def _settle(self, notification: QuestionNotification) -> None:
        if self._forget(notification.batch_id):
            who = f" by {who_is(notification.by)}" if notification.by is not None else ""
            self._terminal.status(f"Question {notification.outcome}{who}.")

    def _forget(self, batch_id: str) -> bool:
        self._answers.pop(batch_id, None)
        return self.pending.pop(batch_id, None) is not None


# -- a batch in words -------------------------------------------------------------------------------------------------


def described(batch: QuestionBatch) -> list[str]:
    """What is asked, in lines safe to print."""
    lines = ["The agent asks:"]
    for number in range(len(batch.questions)):
        lines += _question_lines(batch, number)
    return lines


def _question_lines(batch: QuestionBatch, index: int) -> list[str]:
    question = batch.questions[index]
    number = f"{index + 1}/{len(batch.questions)} " if len(batch.questions) > 1 else ""
    lines = [f"  {number}{exact(question.question)} {_HOW[question.type]}"]
    if question.description:
        # Line by line, each exact and set in: else a line break could pass for a line of ours.
        text = shortened(question.description, limits.CONSOLE_PERMISSION_CHARACTERS)
        lines += [f"    {exact(line)}" for line in text.split("\n")]
    for place, choice in enumerate(question.choices, 1):
        more = f" - {exact(choice.description)}" if choice.description else ""
        lines.append(f"    {place}. {exact(choice.label)}{more}")
    return lines


_HOW = {
    "yes_no": "(yes or no)",
    "single_choice": "(a number, or your own words)",
    "multi_choice": "(numbers, or your own words)",
    "free_text": "(in your own words)",
}


def read_answer(question: Question, text: str) -> QuestionResponse:
    """What was typed, as an answer to this question. Raises Invalid, saying what is expected."""
    said = text.strip()
    if not said:
        raise Invalid(f"Say what: {_HOW[question.type]}.")
    if question.type == "yes_no":
        if said.lower() not in YES_NO:
            raise Invalid("Please answer yes or no.")
        return QuestionResponse(question.id, yes=YES_NO[said.lower()])
    if question.type == "free_text":
        return QuestionResponse(question.id, fill_in_text=said)
    by_label = {choice.label.strip().lower(): choice.id for choice in question.choices}
    if said.lower() in by_label:
        return QuestionResponse(question.id, (by_label[said.lower()],))
    numbers = said.replace(",", " ").split()
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return QuestionResponse(question.id, fill_in_text=said)
    return QuestionResponse(question.id, _chosen(question, numbers))


def _chosen(question: Question, numbers: list[str]) -> tuple[str, ...]:
    # Never taken for words: a number that is not there is a slip of the finger.
    if any(not 0 < int(number[:9]) <= len(question.choices) for number in numbers):
        raise Invalid(f"There are the numbers 1 to {len(question.choices)}.")
    if question.type == "single_choice" and len(numbers) > 1:
        raise Invalid("Please choose one.")
    return tuple(dict.fromkeys(question.choices[int(number) - 1].id for number in numbers))
