"""The post: messages between agents, which wait in a mailbox until their reader takes a step.

A message is claimed when a run of its session comes to a step boundary, is made a fact under an id of its own, and only
then acknowledged: a crash in between hands it over again, and the id shows that it is there already (B71, I23).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import structlog

from windlass import limits
from windlass.errors import Invalid, WindlassError
from windlass.journal import view
from windlass.wire.execution import SteerMessage

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

logger = structlog.get_logger("windlass.post")


class Letter(Protocol):
    """A message that was claimed. `text` is what the reading agent is told, sender and all."""

    @property
    def id(self) -> str: ...

    @property
    def text(self) -> str: ...


class Report(msgspec.Struct, frozen=True):
    """A letter that nobody sent and no mailbox holds: what the engine itself has to tell a run."""

    id: str
    text: str


class Mailroom(Protocol):
    """The mailboxes of a data directory. Plain calls that touch the disk: they are made in a thread."""

    def deliver(self, project: str, session_id: str, sender: str, role: str, text: str) -> None:
        """Durable when it returns; raises TooMany when the mailbox is full."""

    def claim(self, project: str, session_id: str, limit: int) -> Sequence[Letter]:
        """The oldest messages that nobody has claimed."""

    def acknowledge(self, letter: Any) -> None: ...

    def give_back(self, letter: Any) -> None: ...

    def forget(self, project: str, session_id: str) -> None:
        """The mailbox goes, with all that is in it."""


class Post:
    """What a workspace sends and hands over. Without a mailroom there is none to send to."""

    def __init__(self, workspace: "Workspace", mailroom: Mailroom | None) -> None:
        self._workspace = workspace
        self._mailroom = mailroom

    @property
    def is_open(self) -> bool:
        return self._mailroom is not None

    async def deliver(self, session_id: str, sender: str, role: str, text: str) -> None:
        if self._mailroom is None:
            raise Invalid("This server has no mailboxes.")
        path = self._workspace.path
        await self._workspace.context.in_thread(self._mailroom.deliver, path, session_id, sender, role, text)
        self._workspace.mail_arrived(session_id)

    async def claim(self, session_id: str) -> list[Letter]:
        """What waits for this session and is not in its conversation yet."""
        if self._mailroom is None:
            return []
        in_thread, path = self._workspace.context.in_thread, self._workspace.path
        letters: list[Letter] = await in_thread(self._mailroom.claim, path, session_id, limits.MAIL_PER_STEP)
        return [letter for letter in letters if not await self._is_known(letter)]

    async def _is_known(self, letter: Letter) -> bool:
        """Whether it is in the conversation already: a crash came between its fact and its ack."""
        if await self._workspace.read(view.message, self._workspace.id, message_id(letter)) is None:
            return False
        with contextlib.suppress(OSError, WindlassError):  # it is known the next time too
            await self.acknowledge(letter)
        return True

    async def acknowledge(self, letter: Letter) -> None:
        if self._mailroom is not None and not isinstance(letter, Report):
            await self._workspace.context.in_thread(self._mailroom.acknowledge, letter)

    async def give_back(self, letter: Letter) -> None:
        if self._mailroom is not None and not isinstance(letter, Report):
            await self._workspace.context.in_thread(self._mailroom.give_back, letter)

    async def forget(self, session_id: str) -> None:
        """A session was deleted."""
        if self._mailroom is not None:
            try:
                await self._workspace.context.in_thread(self._mailroom.forget, self._workspace.path, session_id)
            except (OSError, WindlassError) as error:
                logger.warning("mailbox not deleted", session=session_id, reason=str(error))


class RunMail:
    """The letters of one run: claimed for it, handed out at its step boundaries, acknowledged when they are facts."""

    def __init__(self, post: Post, session_id: str) -> None:
        self._post = post
        self._session_id = session_id
        self._letters: dict[str, Letter] = {}  # claimed and not yet part of the conversation
        self._handed: set[str] = set()
        self._work: set[asyncio.Task[None]] = set()
        self._looking = False
        self._look_again = False
        self._closed = False

    async def fetch(self) -> None:
        """Claim what waits."""
        if self._post.is_open:
            # In a task of its own: a cancel in the middle would lose what the thread claims all the same.
            await asyncio.shield(self._keep(self._fetch()))

    async def _fetch(self) -> None:
        """A mailbox that cannot be read is not this run's end."""
        try:
            letters = await self._post.claim(self._session_id)
        except (OSError, WindlassError) as error:
            logger.warning("mailbox cannot be read", session=self._session_id, reason=str(error))
        else:
            self._letters |= {letter.id: letter for letter in letters}

    def put(self, report: Report) -> None:
        self._letters[report.id] = report

    def look(self, tell: Callable[[], None]) -> None:
        """Fetch beside the run; `tell` is called when that is done."""
        if not self._post.is_open or self._closed:
            return
        self._look_again = self._looking  # what came while one look was under way is found by another
        if not self._looking:
            self._looking = True
            self._keep(self._look(tell))

    async def _look(self, tell: Callable[[], None]) -> None:
        await self._fetch()
        while self._look_again and not self._closed:
            self._look_again = False
            await self._fetch()
        self._looking = False
        tell()

    def take(self) -> list[SteerMessage]:
        """What was claimed and not handed out yet."""
        waiting = [letter for id, letter in self._letters.items() if id not in self._handed]
        self._handed |= {letter.id for letter in waiting}
        return [SteerMessage(letter.id, letter.text, message_id(letter)) for letter in waiting]

    def taken(self, letter_id: str) -> Letter | None:
        """The executor put this letter into its conversation; None for what is no letter of ours."""
        return self._letters.pop(letter_id, None)

    def acknowledge(self, letter: Letter, durable: Awaitable[None]) -> None:
        """Remove the letter from its mailbox once the fact it became is on disk."""
        self._keep(self._acknowledge(letter, durable))

    async def _acknowledge(self, letter: Letter, durable: Awaitable[None]) -> None:
        try:
            await durable
            await self._post.acknowledge(letter)
        except (OSError, WindlassError) as error:
            # It is handed over again some day, and is known by its id then.
            logger.warning("letter not acknowledged", session=self._session_id, reason=str(error))

    def _keep(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name=f"mail of {self._session_id}")
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def close(self) -> None:
        """Finish what is under way, and give back what nobody took. The run's end waits for it."""
        self._closed = True
        while self._work:
            await asyncio.wait(set(self._work))
        letters, self._letters = self._letters, {}
        for letter in letters.values():
            with contextlib.suppress(OSError, WindlassError):  # its lease ends, and then it is there again
                await self._post.give_back(letter)


def message_id(letter: Letter) -> str:
    """The id of the message a letter becomes: the same however often it is handed over."""
    return f"msg_{letter.id}"
