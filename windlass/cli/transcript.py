"""Prints a session as it grows: text on standard output, each character once; tools and endings on standard error."""

from windlass import limits
from windlass.cli.safe_text import exact, prose, shortened
from windlass.cli.terminal import Terminal
from windlass.client import (
    Conversation,
    Gained,
    Happening,
    Message,
    Removed,
    Replaced,
    ShellCommand,
    Text,
    ToolCallData,
    ToolResult,
    ToolResultData,
)

_ENDINGS = {
    "canceled": "Canceled.",
    "max_tokens": "The answer was cut: the model reached its length limit.",
    "content_filter": "The answer was withheld by the model's content filter.",
}


class Transcript:
    """Give it what `Conversation.apply` returned."""

    def __init__(self, terminal: Terminal, conversation: Conversation) -> None:
        self._terminal = terminal
        self._conversation = conversation
        self._printed: dict[tuple[str, int], _Printed] = {}  # text on the screen, by message and part
        self._finished: set[str] = set()
        self._told: set[str] = set()  # tool calls and results that have their line

    def show(self, happening: Happening) -> None:
        match happening:
            case Gained(field="text"):
                self._gain(happening)
            case Replaced(message=message):
                self._message(message)
            case Gained() | Removed():
                return

    def history(self, messages: list[Message]) -> None:
        """Print the last messages of those that are over, and take all of them for seen.

        One still being written is left out: the stream sends it whole, and then its text is not printed twice.
        """
        over = [message for message in messages if not message.is_open]
        for message in over[-limits.CONSOLE_HISTORY_MESSAGES :]:
            if message.role == "user":
                self.prompt(message.text)
            self._message(message)
        self._finished.update(message.id for message in over)

    def prompt(self, text: str, who: str = "") -> None:
        """Someone's prompt, on one line."""
        author = f"{who} " if who else ""
        self._terminal.end_line()
        self._terminal.status(f"{author}> {shortened(exact(text), limits.CONSOLE_STATUS_CHARACTERS)}", bold=True)

    def _message(self, message: Message) -> None:
        if message.id in self._finished:
            return
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult) and not part.data.unfinished:
                    self._result(part.data)
        elif message.role == "assistant":
            self._texts(message)
            for call in message.tool_calls:
                if call.finished or message.finish is not None:
                    self._call(call)
            self._commands(message)
            self._ending(message)

    def _texts(self, message: Message) -> None:
        texts = {index: part.data.text for index, part in enumerate(message.parts) if isinstance(part, Text)}
        printed = {index: shown for (owner, index), shown in self._printed.items() if owner == message.id}
        if any(shown.text and not texts.get(index) for index, shown in printed.items()):
            # Emptied: the provider broke off and is asked again. What is on the screen cannot be taken back.
            self._start_again(message.id)
        for index, text in texts.items():
            self._catch_up(message.id, index, text)

    def _gain(self, gained: Gained) -> None:
        printed = self._of(gained.message_id, gained.part)
        if gained.at <= printed.length:
            self._print(printed, gained.text[printed.length - gained.at :])
            return
        message = self._conversation.message(gained.message_id)
        if message is not None:
            self._texts(message)

    def _catch_up(self, message_id: str, part: int, text: str) -> None:
        """Print what the whole text has beyond the screen."""
        before = self._of(message_id, part).text
        if text.startswith(before):
            self._print(self._of(message_id, part), text[len(before) :])
        elif not before.startswith(text):
            self._start_again(message_id)
            self._print(self._of(message_id, part), text)

    def _print(self, printed: "_Printed", text: str) -> None:
        if not printed.pieces and text:
            self._terminal.end_line()
        printed.pieces.append(text)
        printed.length += len(text)
        self._terminal.text(prose(text))

    def _start_again(self, message_id: str) -> None:
        self._terminal.end_line()
        self._terminal.status("The model broke off and starts again.", fg="yellow")
        self._forget(message_id)

    def _call(self, call: ToolCallData) -> None:
        if call.id not in self._told:
            self._told.add(call.id)
            self._terminal.end_line()
            arguments = shortened(exact(call.input), limits.CONSOLE_STATUS_CHARACTERS)
            self._terminal.status(f"* {exact(call.name)} {arguments}", fg="cyan")

    def _commands(self, message: Message) -> None:
        """What somebody's own command printed; the command itself was their prompt."""
        for part in message.parts:
            if isinstance(part, ShellCommand) and message.finish is not None:
                failed = part.data.exit_code != 0
                self._lines(part.data.output or f"(no output, exit code {part.data.exit_code})", failed)

    def _result(self, result: ToolResultData) -> None:
        key = f"result {result.tool_call_id}"
        if key in self._told:
            return
        self._told.add(key)
        self._lines(result.content, result.is_error)

    def _lines(self, content: str, is_error: bool) -> None:
        lines = content.rstrip("\n").split("\n")
        shown = lines[: limits.CONSOLE_RESULT_LINES]
        left = len(lines) - len(shown)
        if left:
            shown.append(f"(and {left} more line{'s' if left > 1 else ''})")
        for number, line in enumerate(shown):
            word = "error: " if is_error and number == 0 else ""
            # A tab is layout here, not something to decide on.
            text = f"  {word}{shortened(exact(line.expandtabs(4)), limits.CONSOLE_STATUS_CHARACTERS)}"
            self._terminal.status(text, fg="red" if is_error else None, dim=not is_error)

    def _ending(self, message: Message) -> None:
        finish = message.finish
        if finish is None:
            return
        self._terminal.end_line()
        self._finished.add(message.id)
        self._forget(message.id)
        if finish.reason == "error":
            self._terminal.status(f"It failed: {exact(finish.message or 'no reason was given')}", fg="red")
        elif finish.reason in _ENDINGS:
            self._terminal.status(_ENDINGS[finish.reason], fg="yellow")

    def _of(self, message_id: str, part: int) -> "_Printed":
        return self._printed.setdefault((message_id, part), _Printed())

    def _forget(self, message_id: str) -> None:
        for place in [place for place in self._printed if place[0] == message_id]:
            del self._printed[place]


class _Printed:
    """The text of one part that is on the screen; in pieces, so that growing it does not copy it."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)
