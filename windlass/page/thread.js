// The messages of one session in a row: a window onto the store's list, drawn and redrawn only where something changed.

import { agentItem } from "./agents.js";
import { h } from "./dom.js";
import { isEnded } from "./lookups.js";
import { messageView } from "./message.js";
import { runEnd } from "./run_end.js";

const WINDOW_MESSAGES = 2_000; // in the document at most
const FIRST_MESSAGES = 300; // that are drawn at once: opening a long session must not take a second
const MORE_MESSAGES = 300; // with each "Show earlier"
const MAX_NESTING = 3; // conversations of agents inside each other

/** A session's thread. `update(changes)` as the store tells them (null: anything), `reveal(id)` brings a message in. */
export function threadView(app, sessionId, nesting = 0) {
  const more = { type: "button", hidden: true };
  const earlier = h("button.show-more", { ...more, onclick: showEarlier }, "Show earlier messages");
  const later = h("button.show-more", { ...more, onclick: showLater }, "Show later messages");
  const list = h("div.messages");
  const element = h("div.thread", { dataset: { session: sessionId } }, earlier, list, later);

  let drawn = []; // ids in the window, in order, also of tool messages, which have no view of their own
  let from = -1; // the window's first index in the store's list; -1: nothing was drawn yet
  let isFollowing = true; // the window ends where the list does
  let isStopped = stoppedNow(); // nothing runs in this session: kept, since every call asks for it
  const views = new Map(); // message id -> view
  const calls = new Map(); // tool call id -> {view, startedAt}
  const results = new Map(); // tool call id -> {data}
  const ends = new Map(); // run id -> {element, after: message id}
  const agents = new Map(); // session id -> item
  const context = {
    app,
    toolCalls: register,
    agentItem: nesting < MAX_NESTING ? inlineAgent : null,
    isStopped: () => isStopped,
  };

  return { element, update, reveal, latest, refreshCalls, slotOf: (id) => calls.get(id)?.view.slot, agentOf };

  /** `changes` as the store tells them, or null to look at everything. */
  function update(changes) {
    const all = app.store.messages(sessionId);
    const changed = changes?.messages.get(sessionId);
    if (from < 0) from = Math.max(0, all.length - FIRST_MESSAGES);
    if (!fits(all)) startOver(all);
    const before = drawn.length;
    extend(all, isFollowing ? all.length : from + drawn.length);
    const isLonger = drawn.length !== before;
    trim();
    if (!changes || changed?.size) {
      const shown = all.slice(from, from + drawn.length);
      for (const message of shown) if (!changed || changed.has(message.id)) refresh(message);
    }
    // Not with every word that is streamed: all runs, and all calls, are looked at here.
    if (!changes || isLonger || changes.runs || changes.reset) closeRuns(all);
    if (!changes || changes.sessions || changes.runs) refreshCalls();
    for (const item of agents.values()) item.update(changes);
    earlier.hidden = from === 0;
    later.hidden = from + drawn.length >= all.length;
  }

  // -- the window -----------------------------------------------------------------------------------------------------

  function fits(all) {
    return drawn.every((id, index) => all[from + index]?.id === id);
  }

  function startOver(all) {
    const begins = drawn.length ? all.findIndex((message) => message.id === drawn[0]) : -1;
    from = begins >= 0 && !isFollowing ? begins : Math.max(0, all.length - Math.max(FIRST_MESSAGES, drawn.length));
    wipe();
  }

  function wipe() {
    list.replaceChildren();
    drawn = [];
    for (const map of [views, calls, results, ends]) map.clear();
  }

  function extend(all, end) {
    for (let index = from + drawn.length; index < end; index += 1) {
      drawn.push(all[index].id);
      const view = draw(all[index]);
      if (view) list.append(view.element);
    }
  }

  function trim() {
    const extra = drawn.length - WINDOW_MESSAGES;
    if (extra <= 0) return;
    drawn.splice(0, extra).forEach(erase);
    from += extra;
    for (const [id, { view }] of calls) if (!list.contains(view.element)) calls.delete(id);
  }

  function showEarlier() {
    const all = app.store.messages(sessionId);
    const until = from;
    from = Math.max(0, from - MORE_MESSAGES);
    const fresh = all.slice(from, until);
    drawn.unshift(...fresh.map((message) => message.id));
    const elements = fresh.map(draw).filter(Boolean).map((view) => view.element);
    list.prepend(...elements);
    for (const id of drawn.splice(WINDOW_MESSAGES)) erase(id);
    isFollowing = from + drawn.length >= all.length;
    closeRuns(all);
    update(null);
    elements.at(-1)?.scrollIntoView({ block: "start" }); // what was being read stays near
  }

  function showLater() {
    const all = app.store.messages(sessionId);
    extend(all, Math.min(all.length, from + drawn.length + MORE_MESSAGES));
    isFollowing = from + drawn.length >= all.length;
    update(null);
  }

  /** Show the end of the conversation, and follow it from then on. */
  function latest() {
    if (isFollowing) return;
    wipe();
    isFollowing = true;
    from = -1;
    update(null);
  }

  /** The element of a message, drawing what is around it if need be. Of a tool's result: its call, opened. */
  function reveal(messageId) {
    const all = app.store.messages(sessionId);
    const place = all.findIndex((message) => message.id === messageId);
    if (place < 0) return null;
    if (!drawn.includes(messageId)) {
      wipe();
      from = Math.max(0, place - MORE_MESSAGES / 2);
      extend(all, Math.min(all.length, place + MORE_MESSAGES / 2));
      isFollowing = from + drawn.length >= all.length;
      update(null);
    }
    const call = all[place].parts.map((part) => calls.get(part.data.tool_call_id)?.view).find(Boolean);
    if (call) call.details.open = true;
    return call?.element ?? views.get(messageId)?.element ?? null;
  }

  // -- messages -------------------------------------------------------------------------------------------------------

  function draw(message) {
    if (message.role === "tool") {
      takeResults(message);
      return null;
    }
    const view = messageView(context, message);
    views.set(message.id, view);
    noteStart(message);
    return view;
  }

  function refresh(message) {
    if (message.role === "tool") return takeResults(message);
    noteStart(message); // before the view: a call that is drawn anew tells its duration
    views.get(message.id)?.update(message);
  }

  function erase(id) {
    views.get(id)?.element.remove();
    views.delete(id);
    for (const [runId, { element: line, after }] of ends) {
      if (after !== id) continue;
      line.remove();
      ends.delete(runId);
    }
  }

  function register(callId, view) {
    calls.set(callId, { view, startedAt: 0 });
    const known = results.get(callId);
    if (known) view.result(known.data, NaN);
  }

  /** A call looks different when somebody is asked about it, and when its run is over without a result. */
  function refreshCalls() {
    isStopped = stoppedNow();
    for (const { view } of calls.values()) view.waits(view.slot.querySelector(".card") !== null);
  }

  function stoppedNow() {
    return !app.store.sessions.get(sessionId)?.is_busy && !app.store.activeRun(sessionId);
  }

  function noteStart(message) {
    const finish = message.parts.find((part) => part.type === "finish");
    if (!finish) return;
    for (const part of message.parts) {
      const call = part.type === "tool_call" && calls.get(part.data.id);
      if (call) call.startedAt = finish.data.time;
    }
  }

  function takeResults(message) {
    for (const part of message.parts) {
      if (part.type !== "tool_result") continue;
      results.set(part.data.tool_call_id, { data: part.data });
      const call = calls.get(part.data.tool_call_id);
      call?.view.result(part.data, call.startedAt ? message.updated_at - call.startedAt : NaN);
    }
  }

  function inlineAgent(status) {
    const known = agents.get(status.id);
    if (known) return known.element;
    const item = agentItem(app, status, (id) => threadView(app, id, nesting + 1));
    agents.set(status.id, item);
    return item.element;
  }

  /** The line of the agent that this session belongs to; undefined when it is not on the page. */
  function agentOf(id) {
    let current = id;
    for (let depth = 0; current && depth <= MAX_NESTING; depth += 1) {
      if (agents.has(current)) return agents.get(current).element;
      current = app.store.sessions.get(current)?.parent_session_id;
    }
    return undefined;
  }

  // -- runs -----------------------------------------------------------------------------------------------------------

  function closeRuns(all) {
    let byId = null; // made when it is needed: most runs have their line already
    for (const run of app.store.runsOf(sessionId)) {
      // A prompt that was taken into another run ends with that one, and would say the same in the middle of it.
      if (!isEnded(run) || run.into) continue;
      const last = run.message_ids.findLast((id) => views.has(id));
      if (!last) continue;
      const known = ends.get(run.id);
      if (known?.after === last && known.element.parentNode === list) continue;
      known?.element.remove();
      byId ??= new Map(all.map((message) => [message.id, message]));
      const line = runEnd(app, run, run.message_ids.map((id) => byId.get(id)).filter(Boolean));
      ends.set(run.id, { element: line, after: last });
      views.get(last).element.after(line);
    }
  }
}
