"""What a summary says and is: the words that ask for one, what is added to it, and how it is sent from then on.

Everything a later request needs is in the summary's own message: what was asked for, word for word, and the files that
came with it. So a conversation read back from disk begins exactly as the one in memory did.
"""

from collections.abc import Sequence

import msgspec

from windlass import limits
from windlass.agent.window import estimate_part
from windlass.wire.messages import Binary, ImageUrl, Message, Part, Text, TextData

INSTRUCTION = """\
Sum up this conversation now, for yourself: your summary will take the place of everything above, and you will go on \
from it without seeing the rest again. Write only the summary, and call no tool. Say:
- what the people want, with every wish and limit they stated, also earlier ones that still hold;
- what has been done, what was found out and decided, and why, with exact names: files, functions, commands, errors;
- the state things are in now: what works, what does not, what was tried in vain;
- what is left to do, the very next step first.
Be exact rather than long. If there is an earlier summary above, carry over what still matters in it."""

_FRAME = """\
[The conversation up to here was summed up, because it outgrew the model's context window. This is the summary; it \
stands for everything before it. Go on from here.]

{summary}"""

_ASKED = "\n\nWhat was asked, word for word:\n\n"
_BETWEEN = "\n\n---\n\n"
_CUT = "\n[... the rest of this was left out ...]"


def is_whole(message: Message) -> bool:
    """Whether it stands for everything before it. One that was cut off or stopped does not."""
    if not message.is_summary_message or not message.text.strip():
        return False
    return message.finish is not None and message.finish.reason == "end_turn"


def framed(summary: Message) -> Message:
    """The summary as it is sent: words of ours to the model, with the files that belong to them."""
    files: list[Part] = [part for part in summary.parts if isinstance(part, Binary | ImageUrl)]
    text = _FRAME.format(summary=summary.text.strip())
    return msgspec.structs.replace(
        summary, role="user", parts=[Text(TextData(text)), *files], is_summary_message=False, model="", provider=""
    )


def asked_for(requests: Sequence[Message]) -> str:
    """What people asked for, to be added to a summary: a model's own words for it drift with each summary."""
    texts = [request.text.strip() for request in requests if request.text.strip()]
    kept: list[str] = []
    room = limits.SUMMARY_REQUEST_CHARACTERS
    for text in reversed(texts):
        # The newest first: if not all can stay, it is what is being worked on.
        if room <= 0:
            break
        kept.insert(0, text if len(text) <= room else text[:room] + _CUT)
        room -= len(text)
    return _ASKED + _BETWEEN.join(kept) if kept else ""


def attached(requests: Sequence[Message], budget_tokens: int) -> list[Part]:
    """The files that came with what was asked for, the newest as far as they fit. `budget_tokens` 0: unknown."""
    room = int(budget_tokens * limits.SUMMARY_ATTACHMENT_SHARE)
    kept: list[Part] = []
    for part in (part for request in reversed(requests) for part in reversed(request.parts)):
        if isinstance(part, Binary | ImageUrl):
            room -= estimate_part(part)
            if budget_tokens and room < 0:
                break
            kept.insert(0, part)
    return kept
