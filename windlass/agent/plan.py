"""Plan mode: what an agent may do while it only plans."""

from windlass.wire.tools import Tool

AGENT_TOOL = "agent"

WITHHELD = (
    "Not run: this session is in plan mode, and {name} could change something. Only tools that change nothing can be "
    "used now. Say what you would do with it, as a part of your plan; a person must let the session out of plan mode "
    "before it is done."
)


def fits_plan(tool: Tool) -> bool:
    """Whether it changes nothing. Sub-agents may be started: they only plan as well."""
    return tool.read_only or tool.name == AGENT_TOOL
