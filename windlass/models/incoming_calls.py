"""Tool calls while they are received: announced once with id and name, then passed on piece by piece, within bounds."""

from windlass import limits
from windlass.wire.model import ModelError, Take, ToolCallChunk


class IncomingCall:
    """One call. It is silent until its name is known: whoever receives it wants to know first what is called."""

    def __init__(self, provider: str, index: int, id: str, take: Take) -> None:
        self.index = index
        self.id = id
        self.name = ""
        self.characters = 0
        self._provider = provider
        self._take = take
        self._announced = False
        self._held = ""

    def gain(self, text: str, name: str = "", id: str = "") -> None:
        """More of its arguments, and who it is as soon as that is known.

        Raises ModelError when there are too many: a model that does not stop.
        """
        self.characters += len(text)
        if self.characters > limits.TOOL_ARGUMENTS_BYTES:
            raise ModelError(f"{self._provider} sent a tool call of more than {limits.TOOL_ARGUMENTS_BYTES} bytes.")
        if self._announced:
            if text:
                self._take(ToolCallChunk(self.index, text))
            return
        self._held += text
        self.name, self.id = self.name or name, id or self.id
        if self.name:
            self.announce()

    def announce(self) -> None:
        """Tell of it, if nobody was told yet; also without a name, or the model would wait for its result."""
        if not self._announced:
            self._announced = True
            self._take(ToolCallChunk(self.index, self._held, id=self.id, name=self.name))
            self._held = ""


class IncomingCalls:
    """The calls of one answer, numbered in the order in which they begin."""

    def __init__(self, provider: str, take: Take) -> None:
        self._provider = provider
        self._take = take
        self._calls: list[IncomingCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def newest(self) -> IncomingCall | None:
        return self._calls[-1] if self._calls else None

    def begin(self, id: str) -> IncomingCall:
        """The next call; one without an id gets one, or results could not be told apart."""
        if len(self._calls) >= limits.TOOL_CALLS_PER_STEP:
            raise ModelError(f"{self._provider} asked for more than {limits.TOOL_CALLS_PER_STEP} tool calls at once.")
        call = IncomingCall(self._provider, len(self._calls), id or f"call_{len(self._calls)}", self._take)
        self._calls.append(call)
        return call

    def announce_all(self) -> None:
        for call in self._calls:
            call.announce()
