"""The comparison: everything clients were told against everything that is there. Problems begin with a number."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from windlass.testing.server_process import Event

from .found import Found
from .told import Told

TERMINAL = ("completed", "canceled", "failed", "interrupted")
_OUTCOME = {"allow": "granted", "allow_session": "granted", "deny": "denied"}


def violations(told: Told, found: dict[str, Found]) -> list[str]:
    problems = list(told.problems)
    for workspace, there in found.items():
        for check in (_prompts, _cancels, _permissions, _streams):
            problems += [f"{text} (workspace {workspace})" for text in check(told, workspace, there)]
        for check_alone in (_log, _endings, _order, _conversations):
            problems += [f"{text} (workspace {workspace})" for text in check_alone(there)]
    return problems


def _prompts(told: Told, workspace: str, there: Found) -> Iterator[str]:
    """No acknowledged prompt is lost, none is there twice, none was made up (I1, I8)."""
    stored = {run["id"]: run for run in there.runs}
    created = Counter(event.body["id"] for event in there.facts if event.kind == "run" and event.change == "created")
    for run_id, times in Counter(run["id"] for run in there.runs).items():
        if times > 1 or created[run_id] != 1:
            yield f"I8: run {run_id} is there {times} times and was created {created[run_id]} times"
    sent = {id: prompt for id, prompt in told.prompts.items() if prompt.workspace == workspace}
    for run_id, prompt in sent.items():
        run = stored.get(run_id)
        if prompt.accepted and run is None:
            yield f"I1: run {run_id} was answered 202 and is not there"
        if prompt.refused and run is not None:
            yield f"I1: run {run_id} was refused with {prompt.answers[-1]} and is there"
        if run is not None and (run["session_id"], run["prompt"]) != (prompt.body["session_id"], prompt.body["prompt"]):
            yield f"I1: run {run_id} is not what was sent"
    for run_id in stored.keys() - sent.keys():
        yield f"I1: nobody sent run {run_id}"


def _cancels(told: Told, workspace: str, there: Found) -> Iterator[str]:
    """A run that a cancel was said to cover ended canceled; one that was said to be over stayed as it was (I5, I6)."""
    states = {run["id"]: run["state"] for run in there.runs}
    for cancel in (cancel for cancel in told.cancels if cancel.workspace == workspace):
        if cancel.kind == "session" and cancel.status == 200:
            for run_id in cancel.answer["canceled"]:
                if states.get(run_id) != "canceled":
                    yield f"I5: a cancel said to cover {run_id}, which ended {states.get(run_id)}"
        elif cancel.kind == "run" and cancel.status == 202 and states.get(cancel.target) != "canceled":
            yield f"I6: run {cancel.target} was said to be ending canceled and ended {states.get(cancel.target)}"
        elif cancel.kind == "run" and cancel.status == 200 and states.get(cancel.target) != cancel.answer["state"]:
            yield f"I3: run {cancel.target} was said to be {cancel.answer['state']}, is {states.get(cancel.target)}"
        elif cancel.kind == "run" and cancel.status == 404:
            yield f"I1: run {cancel.target} was accepted and then unknown to a cancel"


def _permissions(told: Told, workspace: str, there: Found) -> Iterator[str]:
    """One answer decided each request, and what was told is what is written (I9, I10, I11)."""
    outcomes: dict[str, list[str]] = defaultdict(list)
    for event in there.facts:
        if event.kind == "permission_notification" and event.body["outcome"] != "asked":
            outcomes[event.body["id"]].append(event.body["outcome"])
    asked = {event.body["id"]: event.body for event in there.facts if event.kind == "permission_request"}
    decided: Counter[str] = Counter()
    for answer in (answer for answer in told.answers if answer.workspace == workspace and answer.resolved):
        decided[answer.permission_id] += 1
        if outcomes[answer.permission_id] != [_OUTCOME[answer.action]]:
            told_was = f"{answer.action} was told resolved: true"
            yield f"I9: of {answer.permission_id} {told_was}, but its outcome is {outcomes[answer.permission_id]}"
    for permission_id, times in decided.items():
        if times > 1:
            yield f"I9: {times} callers were told resolved: true for {permission_id}"
    for permission_id, request in asked.items():
        if len(outcomes[permission_id]) != 1:
            yield f"I11: request {permission_id} has the outcomes {outcomes[permission_id]}"
        _, is_touch, file = str(request["params"].get("command", "")).partition("touch ")
        if is_touch and outcomes[permission_id] != ["granted"] and (there.directory / file).exists():
            yield f"I10: {file} was made although its permission was {outcomes[permission_id]}"


def _streams(told: Told, workspace: str, there: Found) -> Iterator[str]:
    """What each client received, over all its reconnects, is exactly the log (I12, I13)."""
    for watched in (watched for watched in told.watched if watched.workspace == workspace):
        if watched.resets:
            yield f"B41: the client with {watched.name} was told reset {watched.resets} times"
        if watched.facts != there.facts:
            yield f"I13: the client with {watched.name} {_difference(watched.facts, there.facts)}"


def _difference(received: list[Event], log: list[Event]) -> str:
    numbers = Counter(event.id for event in received)
    missing = [event.id for event in log if event.id not in numbers]
    twice = [id for id, times in numbers.items() if times > 1]
    unknown = numbers.keys() - {event.id for event in log}
    if missing or twice or unknown:
        return f"lacks {missing[:5]}, has twice {twice[:5]}, has what is not in the log {sorted(unknown)[:5]}"
    return "has the same numbers with other content, or in another order"


def _log(there: Found) -> Iterator[str]:
    numbers = [event.seq for event in there.facts]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "I12: the log's numbers are not dense"
    if len({event.id.partition(".")[0] for event in there.facts}) > 1:
        yield "I12: the log has more than one epoch"


def _endings(there: Found) -> Iterator[str]:
    """Every run is over, once, and nothing of it comes after its last word (I3)."""
    completes: dict[str, list[int]] = defaultdict(list)
    terminals: Counter[str] = Counter()
    last: dict[str, int] = {}
    for event in there.facts:
        body = event.body
        if event.kind == "run_complete":
            completes[body["run_id"]].append(event.seq)
        elif event.kind == "run":
            last[body["id"]] = event.seq
            terminals[body["id"]] += body["state"] in TERMINAL
    for run in there.runs:
        run_id = run["id"]
        if run["state"] not in TERMINAL:
            yield f"I3: run {run_id} is {run['state']}"
        if len(completes[run_id]) != 1 or terminals[run_id] != 1:
            yield f"I3: run {run_id} was ended {terminals[run_id]} times and announced {len(completes[run_id])} times"
        elif completes[run_id][0] < last[run_id]:
            yield f"I3: something of run {run_id} follows its run_complete"
    ends = {run["id"]: completes[run["id"]][0] for run in there.runs if completes[run["id"]]}
    owner = {message: run["id"] for run in there.runs for message in run["message_ids"]}
    for event in there.facts:
        if event.kind == "message" and event.seq > ends.get(owner.get(event.body["id"], ""), event.seq):
            yield f"I3: a message of run {owner[event.body['id']]} follows its run_complete"


def _order(there: Found) -> Iterator[str]:
    """One run at a time in a session, in the order they were accepted (I2, I4). Steered runs share another's time."""
    accepted: dict[str, int] = {}
    active: dict[str, str] = {}
    newest: dict[str, int] = {}
    for event in there.facts:
        if event.kind != "run":
            continue
        run: dict[str, Any] = event.body
        session, run_id = run["session_id"], run["id"]
        accepted.setdefault(run_id, event.seq)
        if run["state"] in TERMINAL and active.get(session) == run_id:
            del active[session]
        elif run["state"] in ("running", "waiting") and not run.get("into") and active.get(session) != run_id:
            if session in active:
                yield f"I2: {run_id} runs while {active[session]} does"
            if accepted[run_id] < newest.get(session, 0):
                yield f"I4: {run_id} started after a run that was accepted later"
            active[session], newest[session] = run_id, accepted[run_id]


def _conversations(there: Found) -> Iterator[str]:
    """Every call has one result, every answer its end, every run its prompt and its answer (I7)."""
    for session, messages in there.messages.items():
        calls: Counter[str] = Counter()
        results: Counter[str] = Counter()
        for message in messages:
            for part in message["parts"]:
                if part["type"] == "tool_call":
                    calls[part["data"]["id"]] += 1
                elif part["type"] == "tool_result":
                    results[part["data"]["tool_call_id"]] += 1
            if message["role"] == "assistant" and not message["parts"]:
                yield f"I7: an assistant message of {session} is empty"
            elif message["role"] == "assistant" and message["parts"][-1]["type"] != "finish":
                yield f"I7: an assistant message of {session} has no end"
        if calls != results:
            yield f"I7: {session} has calls {calls - results} without results, results {results - calls} without calls"
        if len({message["id"] for message in messages}) != len(messages):
            yield f"I7: {session} has a message twice"
    roles = {message["id"]: message["role"] for messages in there.messages.values() for message in messages}
    for run in there.runs:
        kinds = {roles.get(message) for message in run["message_ids"]}
        if None in kinds or "user" not in kinds or ("assistant" not in kinds and not run.get("into")):
            yield f"I7: run {run['id']} ({run['state']}) has the messages {sorted(map(str, kinds))}"
