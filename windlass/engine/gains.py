"""What a run brings into its workspace beside its own messages: steering it took, letters, usage, todos, files."""

from collections.abc import Callable
from typing import Any

from windlass.core.lane import Entry, Lane
from windlass.engine.context import Context
from windlass.engine.post import Letter, message_id
from windlass.engine.sessions import Sessions
from windlass.engine.transcript import Transcript, attachment_parts
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.run_events import FileWritten, UsageGained
from windlass.wire.sessions import FileVersion, Todo


class Gains:
    """Each method stages the facts and returns the head they rest on. `spend` counts what a family of agents used."""

    def __init__(
        self,
        context: Context,
        log: Log,
        sessions: Sessions,
        spend: Callable[[Entry, UsageGained], None],
        file_versions: dict[tuple[str, str], int],
    ) -> None:
        self._context = context
        self._log = log
        self._sessions = sessions
        self._spend = spend
        self._file_versions = file_versions

    def forget_session(self, session_id: str) -> None:
        for key in [key for key in self._file_versions if key[0] == session_id]:
            del self._file_versions[key]

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
            cost=session.cost + gained.cost,
        )
        if gained.cost:
            for above in self._sessions.lineage(session.id)[:-1]:
                totals += self._sessions.change(above.id, entry.by, cost=above.cost + gained.cost)
        # The run's own figures too: a crash would lose them otherwise.
        return self._log.append([*totals, *lane.progress(entry)])

    def set_todos(self, entry: Entry, todos: list[Todo]) -> int:
        return self._log.append(self._sessions.change(entry.run.session_id, entry.by, todos=todos))

    def add_file(self, entry: Entry, written: FileWritten) -> int:
        session_id, now = entry.run.session_id, self._context.clock.seconds()
        version = self._file_versions.get((session_id, written.path), 0) + 1
        self._file_versions[(session_id, written.path)] = version
        id = self._context.new_id("file")
        body = FileVersion(id, session_id, written.path, written.content, version, now, now)
        change: Any = "created" if version == 1 else "updated"
        return self._log.append([Fact("file", change, body, entry.by, session_id, entry.run.id, key=id)])
