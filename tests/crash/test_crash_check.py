"""The comparison of the crash suite finds what it is there to find: a checker that never complains proves nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windlass.testing.server_process import Event

from .check import violations
from .found import Found
from .model import problems_of
from .told import SentAnswer, SentCancel, SentPrompt, Told, Watched

Tamper = Callable[[Told, Found], object]


def event(seq: int, kind: str, change: str, body: dict[str, Any]) -> Event:
    return Event(id=f"epoch.{seq}", data={"type": kind, "payload": {"type": change, "payload": body}})


def run(state: str, **fields: Any) -> dict[str, Any]:
    base = {"id": "run-1", "session_id": "s", "prompt": "Go.", "message_ids": ["user", "call", "result", "end"]}
    return {**base, "state": state, **fields}


def message(id: str, role: str, *parts: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"id": id, "role": role, "session_id": "s", "parts": [{"type": kind, "data": data} for kind, data in parts]}


def one_good_run() -> tuple[Told, Found]:
    """One run that asked for a permission, was allowed, and completed; one client saw all of it."""
    messages = [
        message("user", "user", ("text", {"text": "Go."})),
        message("call", "assistant", ("tool_call", {"id": "c"}), ("finish", {"reason": "tool_use"})),
        message("result", "tool", ("tool_result", {"tool_call_id": "c"})),
        message("end", "assistant", ("finish", {"reason": "end_turn"})),
    ]
    facts = [
        event(1, "run", "created", run("accepted")),
        event(2, "run", "updated", run("running")),
        event(3, "permission_request", "created", {"id": "p", "params": {"command": "touch it"}}),
        event(4, "permission_notification", "created", {"id": "p", "outcome": "granted"}),
        event(5, "message", "created", messages[-1]),
        event(6, "run", "updated", run("completed")),
        event(7, "run_complete", "created", {"run_id": "run-1"}),
    ]
    told = Told()
    prompt = SentPrompt("w", {"run_id": "run-1", "session_id": "s", "prompt": "Go."}, [(202, {})], 1)
    told.prompts["run-1"] = prompt
    told.answers += [SentAnswer("w", "p", "allow", True), SentAnswer("w", "p", "deny", False)]
    told.watched.append(Watched("w", "whole messages", list(facts), 1))
    return told, Found(Path("/nowhere"), facts, [run("completed")], {"s": messages})


def test_a_world_without_faults_has_no_violations() -> None:
    """Else the suite cries wolf."""
    told, found = one_good_run()
    assert violations(told, {"w": found}) == []


def renumber(found: Found, told: Told) -> None:
    found.facts[:] = [Event(id=f"epoch.{n}", data=fact["data"]) for n, fact in enumerate(found.facts, 1)]
    told.watched[0].facts = list(found.facts)


def end_twice(told: Told, found: Found) -> None:
    found.facts.append(found.facts[-1])
    renumber(found, told)


def speak_after_the_end(told: Told, found: Found) -> None:
    found.facts.append(found.facts[4])
    renumber(found, told)


def decide_twice(told: Told, found: Found) -> None:
    found.facts.insert(4, event(0, "permission_notification", "created", {"id": "p", "outcome": "denied"}))
    renumber(found, told)


def run_two_at_once(told: Told, found: Found) -> None:
    found.facts.insert(2, event(0, "run", "updated", run("running", id="run-2")))
    renumber(found, told)


TAMPERED: dict[str, tuple[str, Tamper]] = {
    "an acknowledged prompt is lost": ("I1", lambda told, found: found.runs.clear()),
    "a refused prompt is there": ("I1", lambda told, found: told.prompts["run-1"].answers.__setitem__(0, (429, {}))),
    "a run nobody sent": ("I1", lambda told, found: told.prompts.clear()),
    "a run twice": ("I8", lambda told, found: found.runs.append(found.runs[0])),
    "a run that never ended": ("I3", lambda told, found: found.runs.__setitem__(0, run("running"))),
    "a run that ended twice": ("I3", end_twice),
    "a message after the end": ("I3", speak_after_the_end),
    "two runs at once": ("I2", run_two_at_once),
    "a cancel without effect": (
        "I5",
        lambda told, found: told.cancels.append(SentCancel("w", "session", "s", 200, {"canceled": ["run-1"]})),
    ),
    "a run's cancel without effect": (
        "I6",
        lambda told, found: told.cancels.append(SentCancel("w", "run", "run-1", 202, {"state": "running"})),
    ),
    "an answer that was not written": ("I9", lambda told, found: setattr(told.answers[1], "resolved", True)),
    "a request decided twice": ("I11", decide_twice),
    "a fact that was received and is not there": ("I12", lambda told, found: found.facts.pop(3)),
    "a fact that did not come": ("I13", lambda told, found: told.watched[0].facts.pop(3)),
    "a fact that came twice": ("I13", lambda told, found: told.watched[0].facts.append(told.watched[0].facts[-1])),
    "a call without its result": ("I7", lambda told, found: found.messages["s"].pop(2)),
    "an answer without its end": ("I7", lambda told, found: found.messages["s"][1]["parts"].pop()),
    "a cursor that was not honoured": ("B41", lambda told, found: setattr(told.watched[0], "resets", 1)),
}


@pytest.mark.parametrize(("number", "tamper"), TAMPERED.values(), ids=TAMPERED.keys())
def test_each_kind_of_fault_is_found(number: str, tamper: Tamper) -> None:
    """Else the crash suite would pass over exactly what it was written for."""
    told, found = one_good_run()
    tamper(told, found)
    assert number in [problem.partition(":")[0] for problem in violations(told, {"w": found})]


def test_a_conversation_that_a_provider_would_refuse_is_found() -> None:
    """I7: else a history that was spoilt by a crash looks fine until a real model is asked."""
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    user = {"role": "user", "content": "Go."}
    assert problems_of([user, call, result]) == []
    assert problems_of([user, call]) and problems_of([user, call, user]) and problems_of([user, result])
