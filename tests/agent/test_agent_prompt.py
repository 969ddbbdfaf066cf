"""The system prompt."""

from windlass.agent.prompt import system_prompt


def test_the_prompt_names_the_workspace_and_the_tools() -> None:
    """Otherwise the model would not know where it is and what it can do."""
    prompt = system_prompt("/home/ada/engine", ["ls", "bash"])
    assert "/home/ada/engine" in prompt and "ls, bash" in prompt


def test_the_prompt_is_the_same_every_time() -> None:
    """Otherwise nothing after it could ever be cached."""
    assert system_prompt("/w", ["ls"]) == system_prompt("/w", ["ls"])


def test_braces_in_a_path_are_only_braces() -> None:
    """Otherwise a directory with a strange name would break every run in it."""
    assert "/w/{tools}" in system_prompt("/w/{tools}", ["{0}"])
