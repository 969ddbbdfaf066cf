"""The prompt of `windlass run`: what was typed, and what is piped in on standard input."""

import os
import re
import select
import time
from collections.abc import Callable

import click

from windlass import limits


def is_terminal(descriptor: int = 0) -> bool:
    """Whether a person may be there. A closed standard input (`<&-`) is none."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def whole_prompt(prompt: str | None, notice: Callable[[str], None], descriptor: int = 0) -> str:
    """The prompt to send: PROMPT, standard input ("-", or no PROMPT), or both when something is piped in beside it.

    Raises UsageError for one that is empty or too long, KeyboardInterrupt when a person does not want to wait.
    """
    if prompt not in (None, "-") and is_terminal(descriptor):
        text = str(prompt)
    elif prompt is None and is_terminal(descriptor):
        raise _usage("Say what to do: windlass run PROMPT, or pipe the prompt in.")
    elif prompt in (None, "-"):
        text = read_input(notice, descriptor)
    else:
        text = with_input(str(prompt), read_input(notice, descriptor))
    if not text.strip():
        raise _usage("The prompt is empty.")
    if len(text) > limits.PROMPT_CHARACTERS:
        raise _too_long()
    return text


def with_input(prompt: str, piped: str) -> str:
    """The prompt with what was piped in below it, as a block of its own: a model must not take it for the request."""
    if not piped.strip():
        return prompt
    # Longer than any fence in it: else a Markdown file would end the block, and go on as if it were the prompt.
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", piped)), default=0))
    return f"{prompt}\n\n{fence}\n{piped.rstrip()}\n{fence}"


def read_input(notice: Callable[[str], None], descriptor: int = 0) -> str:
    """All of standard input. Whoever forgot that it is open is told so while it waits."""
    content = bytearray()
    deadline = time.monotonic() + limits.CONSOLE_INPUT_SECONDS
    said = False
    while True:
        try:
            ready, _, _ = select.select([descriptor], [], [], limits.CONSOLE_INPUT_NOTICE_SECONDS)
            if not ready:
                # In this order: a machine that slept over the deadline must not give up before it has said a word.
                if not said:
                    said = True
                    notice("Reading standard input to its end (</dev/null, if there is nothing to read).")
                elif time.monotonic() > deadline:
                    raise _usage("Nothing came on standard input for too long. Give it nothing: </dev/null")
                continue
            chunk = os.read(descriptor, 64 * limits.KIB)
        except (OSError, ValueError):
            return ""  # closed: there is nothing to read
        if not chunk:
            return content.decode("utf-8", "replace")
        content += chunk
        deadline = time.monotonic() + limits.CONSOLE_INPUT_SECONDS
        if len(content) > limits.CONSOLE_INPUT_BYTES:
            raise _too_long()


def _too_long() -> click.UsageError:
    return _usage(
        f"The prompt is longer than {limits.PROMPT_CHARACTERS:,} characters. Put the text into a file of the workspace "
        "and name that."
    )


def _usage(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context(silent=True))
