"""The user's standing rules: deny first, then the longest match, and a tie asks."""

import pytest

from windlass.core.policy import Policy, Rule, fits


@pytest.mark.parametrize(
    ("policy", "tool", "resource", "expected"),
    [
        pytest.param(Policy(), "edit", "a.txt", "ask", id="nothing_configured_asks"),
        pytest.param(Policy(ask=()), "edit", "a.txt", "ask", id="no_rule_at_all_asks"),
        pytest.param(Policy(allow=("view",)), "view", "a.txt", "allow", id="a_name_allows_its_tool"),
        pytest.param(Policy(allow=("view",)), "edit", "a.txt", "ask", id="a_name_allows_no_other_tool"),
        pytest.param(Policy(allow=("view",)), "viewer", "a.txt", "ask", id="a_name_is_not_a_prefix"),
        pytest.param(Policy(allow=("View",)), "view", "a.txt", "ask", id="case_matters"),
        pytest.param(Policy(allow=("mcp_*",)), "mcp_search", "q", "allow", id="a_glob_on_the_tool"),
        pytest.param(Policy(allow=("*",), ask=("*",)), "edit", "a.txt", "ask", id="a_tie_asks"),
        pytest.param(Policy(allow=("*",)), "edit", "a.txt", "allow", id="allow_everything"),
        pytest.param(Policy(allow=("edit",), ask=("*",)), "edit", "a.txt", "allow", id="the_longer_allow_wins"),
        pytest.param(Policy(allow=("*",), ask=("edit",)), "edit", "a.txt", "ask", id="the_longer_ask_wins"),
        pytest.param(Policy(allow=("bash:git *",)), "bash", "git status", "allow", id="an_argument_allows"),
        pytest.param(Policy(allow=("bash:git *",)), "bash", "rm -r .", "ask", id="another_argument_asks"),
        pytest.param(Policy(allow=("bash:git *",)), "edit", "git status", "ask", id="an_argument_is_of_its_tool"),
        pytest.param(Policy(allow=("bash:git",)), "bash", "git push", "ask", id="an_argument_is_matched_whole"),
        pytest.param(
            Policy(allow=("bash:git *",), ask=("bash:git push*",)), "bash", "git push", "ask", id="longer_argument_wins"
        ),
        pytest.param(
            Policy(allow=("bash", "bash:git *"), ask=("bash:g*",)),
            "bash",
            "git status",
            "allow",
            id="of_several_matches_the_longest_counts",
        ),
        pytest.param(Policy(allow=("bash",), deny=("bash",)), "bash", "ls", "deny", id="deny_beats_the_same_allow"),
        pytest.param(
            Policy(allow=("bash:rm -r build",), deny=("bash:rm *",)),
            "bash",
            "rm -r build",
            "deny",
            id="deny_beats_longer",
        ),
        pytest.param(
            Policy(allow=("*",), ask=(), deny=("bash:rm *",)), "bash", "ls", "allow", id="deny_only_its_match"
        ),
        pytest.param(Policy(deny=("bash:*secret*",)), "bash", "cat a\ncat secret", "deny", id="a_glob_crosses_lines"),
        pytest.param(
            Policy(deny=("bash:rm *",), allow_for_run=("bash:rm -r build",)),
            "bash",
            "rm -r build",
            "deny",
            id="deny_beats_what_came_with_a_prompt",
        ),
        pytest.param(
            Policy(ask=("bash:git push*",), allow_for_run=("bash:*",)),
            "bash",
            "git push",
            "ask",
            id="what_came_with_a_prompt_must_be_longer_than_an_ask",
        ),
        pytest.param(Policy(allow=("edit:src/*",)), "edit", "src/a:b.py", "allow", id="a_colon_in_the_argument"),
    ],
)
def test_the_policy_decides(policy: Policy, tool: str, resource: str, expected: Rule) -> None:
    """Else a tool acts that the user had forbidden or wanted to be asked about, or asks for what is allowed (I10)."""
    assert policy.decide(tool, resource) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://docs.example.org/a/b", "allow"),
        ("https://elsewhere.net/.example.org/", "ask"),
        ("https://elsewhere.net/?.example.org/", "ask"),
        ("https://elsewhere.net:8443/x.example.org/y", "ask"),
    ],
)
def test_an_allow_for_a_host_is_about_the_host(url: str, expected: str) -> None:
    """A28: everyone could write the name of an allowed host into a path of their own."""
    pattern = "https://*.example.org/*"
    assert Policy(allow=(f"fetch:{pattern}",)).decide("fetch", url) == expected
    assert fits(pattern, "fetch", url) is (expected == "allow")
    assert Policy(allow=("fetch",), deny=("fetch:*.example.org/*",)).decide("fetch", url) == "deny"
