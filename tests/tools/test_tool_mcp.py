"""Tools of MCP servers as an agent's own: their names, what people are asked, and what becomes of the answer."""

import re

import pytest

from windlass.tools.mcp import mcp_tools, tool_name
from windlass.wire.delegation import CallMcpTool, McpOutput, McpTool, OwnerReply
from windlass.wire.tools import ToolError


class Owner:
    """The owner of a run: keeps what it was asked, and answers with `reply`."""

    def __init__(self, reply: OwnerReply) -> None:
        self.asked: list[CallMcpTool] = []
        self._reply = reply

    async def delegate(self, request: CallMcpTool) -> OwnerReply:
        self.asked.append(request)
        return self._reply


def offered(server: str, name: str, read_only: bool = False) -> McpTool:
    return McpTool(server, name, "What it does.", {"type": "object"}, read_only)


NOBODY = Owner(OwnerReply(error="Nobody is there."))


def names(*found: McpTool, taken: tuple[str, ...] = ()) -> list[str]:
    return [tool.name for tool in mcp_tools(found, NOBODY.delegate, taken)]


def test_a_name_is_one_that_every_provider_takes() -> None:
    """A provider would refuse the whole request because of one tool."""
    assert tool_name("git-hub", "issues/list all") == "mcp_git-hub_issues_list_all"
    for name in (tool_name("x" * 40, "y" * 128), tool_name("a", "ünïcode\n")):
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)


def test_tools_that_would_have_the_same_name_are_all_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A32: one server could take the place of another, and be called with what was meant for that one."""
    assert names(offered("a", "b_c"), offered("a_b", "c"), offered("a", "fine")) == ["mcp_a_fine"]
    assert "a/b_c" in capsys.readouterr().out


def test_a_built_in_tool_is_never_shadowed() -> None:
    """A32: a server could read every file that is written."""
    assert names(offered("a", "b"), taken=("mcp_a_b",)) == []
    assert names(offered("a", "bash"), taken=("bash",)) == ["mcp_a_bash"]


def test_people_are_asked_about_the_server_the_tool_and_the_arguments() -> None:
    """I10: they could not tell what they allow; and a grant would cover more than what was asked."""
    (tool,) = mcp_tools([offered("git", "push")], NOBODY.delegate, ())
    ask = tool.plan({"force": True}, "call_1").ask
    assert (ask.tool_name, ask.action, ask.resource, ask.confined) == (
        "mcp_git_push",
        "call",
        'git/push {"force":true}',
        False,
    )
    assert ask.params == {"server": "git", "tool": "push", "arguments": {"force": True}}


async def test_what_was_planned_is_what_is_called() -> None:
    """I10: what people approved would not be what is done."""
    owner = Owner(OwnerReply(mcp_output=McpOutput("done", data="AAAA", mime_type="image/png")))
    (tool,) = mcp_tools([offered("git", "push")], owner.delegate, ())
    output = await tool.plan({"force": True}, "call_1").run()
    assert owner.asked == [CallMcpTool("git", "push", {"force": True})]
    assert (output.content, output.data, output.mime_type, output.is_error) == ("done", "AAAA", "image/png", False)


async def test_a_refusal_is_told_to_the_model() -> None:
    """It would take silence for success."""
    (tool,) = mcp_tools([offered("git", "push")], NOBODY.delegate, ())
    with pytest.raises(ToolError, match="Nobody is there"):
        await tool.plan({}, "call_1").run()
