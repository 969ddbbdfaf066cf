"""What a run brings into its workspace beside its own messages: steering it took, letters, usage, todos, a title."""

from collections.abc import Callable

from windlass import limits
from windlass.core.lane import Entry, Lane
from windlass.engine.context import Context
from windlass.engine.post import Letter, message_id
from windlass.engine.sessions import Sessions, suggested_title
from windlass.engine.transcript import Transcript, attachment_parts
from windlass.journal.log import Log
from windlass.wire.run_events import UsageGained
from windlass.wire.sessions import Todo


class Gains:
    """Each method stages the facts and returns the head they rest on. `spend` counts what a family of agents used."""

    def __init__(
        self,
        context: Context,
        log: Log,
        sessions: Sessions,
        spend: Callable[[Entry, UsageGained], None],
    ) -> None:
        self._context = context
        self._log = log
        self._sessions = sessions
        self._spend = spend

    def steer_taken(self, lane: Lane, run_id: str, message_id: str, transcript: Transcript) -> int:
        """The active run took a steered prompt: its message stands here in the conversation."""
        entry = lane.get(run_id)
        facts = lane.steer_taken(run_id, self._context.clock.rfc3339())
        if entry is None or facts is None:
            return self._log.head
        parts = attachment_parts(entry.private.attachments)
        message = transcript.user(entry.run.prompt, self._context.clock.seconds(), parts, message_id)
        lane.note(entry, message_id=message.id)
        return self._log.append([*facts, transcript.create(message, run_id)])

    def letter_taken(self, lane: Lane, entry: Entry, letter: Letter, transcript: Transcript) -> int:
        """The active run took a message out of its mailbox: it stands here in the conversation."""
        message = transcript.user(letter.text, self._context.clock.seconds(), [], message_id(letter))
        lane.note(entry, message_id=message.id)
        return self._log.append([transcript.create(message)])

    def add_usage(self, lane: Lane, entry: Entry, gained: UsageGained) -> int:
        session = self._sessions.ending(entry.run.session_id)
        if session is None:
            return self._log.head
        self._spend(entry, gained)
        totals = self._sessions.change(
            session.id,
            entry.by,
            prompt_tokens=session.prompt_tokens + gained.usage.prompt_tokens,
            completion_tokens=session.completion_tokens + gained.usage.completion_tokens,
            cache_read_tokens=session.cache_read_tokens + gained.usage.cache_read_tokens,
            cost=session.cost + gained.cost,
        )
        if gained.cost:
            for above in self._sessions.lineage(session.id)[:-1]:
                totals += self._sessions.change(above.id, entry.by, cost=above.cost + gained.cost)
        # The run's own figures too: a crash would lose them otherwise.
        return self._log.append([*totals, *lane.progress(entry)])

    def set_todos(self, entry: Entry, todos: list[Todo]) -> int:
        # Cut, whatever an executor says: the list is repeated with every change of its session, to everyone.
        kept = [_bounded(todo) for todo in todos[: limits.TODOS]]
        return self._log.append(self._sessions.change(entry.run.session_id, entry.by, todos=kept))

    def suggest_title(self, entry: Entry, text: str) -> int:
        """Call the session so, while it has no name: one that a person gave it meanwhile stays."""
        session, title = self._sessions.ending(entry.run.session_id), suggested_title(text)
        if session is None or session.title or session.parent_session_id or not title:
            return self._log.head
        return self._log.append(self._sessions.change(session.id, entry.by, title=title))


def _bounded(todo: Todo) -> Todo:
    cut = limits.TODO_CHARACTERS
    return Todo(todo.content[:cut], todo.status[: limits.ID_CHARACTERS], todo.active_form[:cut])
