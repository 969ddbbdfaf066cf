"""What an executor asks of the owner of its run: sub-agents, questions to people, tools of MCP servers.

The owner answers (the engine, or the parent at the other end of a worker's link), never the executor itself: limits,
costs, cancels and people's answers are decided in one place, and a worker needs no door of its own to any of it.
"""

from typing import Any, Literal

import msgspec

from windlass.wire.questions import Question, QuestionOutcome, QuestionResponse


class StartAgent(msgspec.Struct, tag_field="action", tag="start", frozen=True):
    """Start a sub-agent in a session of its own. "" means: the role's, else the parent's."""

    prompt: str
    role: str = ""
    model: str = ""
    reasoning_effort: str = ""


class WaitForAgents(msgspec.Struct, tag_field="action", tag="wait", frozen=True):
    """Wait until all of these (or any of them) are not busy any more. No ids: those this run started.

    `report`: what came of them is also put into the conversation, as a steering message that is there before the reply.
    """

    ids: tuple[str, ...] = ()
    until: Literal["all", "any"] = "all"
    timeout_seconds: float = 0.0
    report: bool = False


class ListAgents(msgspec.Struct, tag_field="action", tag="list", frozen=True):
    pass


class MessageAgent(msgspec.Struct, tag_field="action", tag="message", frozen=True):
    """Put a message into the agent's mailbox: read at its next step, or when it runs again."""

    id: str
    text: str


class SteerAgent(msgspec.Struct, tag_field="action", tag="steer", frozen=True):
    """Fold a prompt into the agent's active run; an idle agent starts a run with it."""

    id: str
    text: str


class CancelAgent(msgspec.Struct, tag_field="action", tag="cancel", frozen=True):
    """Cancel everything the agent does, and what its own agents do."""

    id: str


AgentsRequest = StartAgent | WaitForAgents | ListAgents | MessageAgent | SteerAgent | CancelAgent


class AgentStatus(msgspec.Struct, omit_defaults=True, frozen=True):
    """A sub-agent as its parent sees it. `id` is its session; `text` its last answer; `branch` where its work is."""

    id: str
    role: str
    state: str
    title: str = ""
    text: str = ""
    error: str = ""
    branch: str = ""
    cost: float = 0.0


class AskQuestions(msgspec.Struct, tag_field="action", tag="ask_questions", frozen=True):
    """Ask everyone who is attached; the first to answer the whole batch answers it."""

    tool_call_id: str
    questions: tuple[Question, ...]


class ListMcpTools(msgspec.Struct, tag_field="action", tag="list_mcp_tools", frozen=True):
    """What the MCP servers of the workspace offer. One that is not there within its connect time offers nothing."""


class CallMcpTool(msgspec.Struct, tag_field="action", tag="call_mcp_tool", frozen=True):
    """Call a tool of an MCP server. People have been asked already."""

    server: str
    tool: str
    arguments: dict[str, Any]


class McpTool(msgspec.Struct, omit_defaults=True, frozen=True):
    """A tool as its server describes it; `schema` is the JSON schema of its arguments."""

    server: str
    name: str
    description: str
    schema: dict[str, Any]
    read_only: bool = False


class McpOutput(msgspec.Struct, omit_defaults=True, frozen=True):
    """`data` is an image, base64, if there is one."""

    content: str
    is_error: bool = False
    data: str = ""
    mime_type: str = ""


OwnerRequest = AgentsRequest | AskQuestions | ListMcpTools | CallMcpTool


class OwnerReply(msgspec.Struct, omit_defaults=True, frozen=True):
    """`error` says why it was refused and what to do; then nothing was done.

    The rest is what was asked for: `agents`, the `outcome` of a batch of questions with the `answers` of people, the
    `mcp_tools` there are, the `mcp_output` of a call.
    """

    agents: tuple[AgentStatus, ...] = ()
    error: str = ""
    outcome: QuestionOutcome | Literal[""] = ""
    answers: tuple[QuestionResponse, ...] = ()
    mcp_tools: tuple[McpTool, ...] = ()
    mcp_output: McpOutput | None = None
