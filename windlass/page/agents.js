// Sub-agents: each is a session of its own. A tree of all that belong to the shown session, and the one that a tool
// call started, which opens in its place.

import { h, fill } from "./dom.js";
import { money, plural } from "./figures.js";
import { sessionAddress } from "./run_end.js";
import { prose } from "./visible.js";

const MAX_DEPTH = 6; // the server allows fewer; a chain of parents that goes in a circle must not hang the page
const SIGNS = {
  running: "◌", waiting: "?", queued: "…", completed: "✓", canceled: "–", failed: "✕", interrupted: "✕", ended: "·",
};
const WORDS = {
  running: "working",
  waiting: "waits for you",
  queued: "waits for its turn",
  completed: "finished",
  canceled: "cancelled",
  failed: "failed",
  interrupted: "interrupted",
  ended: "ended",
};

/** What an agent is doing: a key of the signs and words above. */
export function agentState(store, session) {
  const asks = (one) => one.session_id === session.id;
  if ([...store.permissions.values(), ...store.questions.values()].some(asks)) return "waiting";
  const runs = store.runsOf(session.id);
  if (runs.some((run) => run.state === "running" || run.state === "waiting")) return "running";
  if (runs.some((run) => run.state === "queued" || run.state === "accepted")) return "queued";
  // Of an agent among very many only what its session says is known.
  return session.is_busy ? "running" : (runs.at(-1)?.state ?? "ended");
}

/** The tree of all agents below a session. `update(sessionId)` draws it; nothing is shown when there are none. */
export function agentsTree(app) {
  const summary = h("summary");
  const list = h("ul");
  const element = h("details.agents-tree", { hidden: true, dataset: { testid: "agents-tree" } }, summary, list);
  let drawn = "";
  let wasTouched = false; // a person opened or closed it: then it stays so
  summary.addEventListener("click", () => (wasTouched = true));
  return { element, update };

  function update(sessionId) {
    const found = below(app.store, sessionId);
    element.hidden = found.length === 0;
    const states = found.map(({ session }) => agentState(app.store, session));
    const rows = found.map(({ session, depth }, index) => row(session, states[index], depth));
    const now = JSON.stringify([sessionId, rows]);
    if (now === drawn) return; // most updates are about something else, and a redraw would lose the focus
    drawn = now;
    const busy = states.filter((state) => !ENDED.has(state)).length;
    fill(summary, `${plural(found.length, "agent")}${busy ? `, ${busy} at work` : ""}`);
    fill(list, branch(found, states, 0, 0).items);
    if (!wasTouched) element.open = busy > 0;
  }

  /** The items of one level, from a place in the list on; `next` is the first that belongs to a level above. */
  function branch(found, states, from, depth) {
    const items = [];
    let next = from;
    while (next < found.length && found[next].depth === depth) {
      const item = treeItem(found[next].session, states[next]);
      const deeper = branch(found, states, next + 1, depth + 1);
      if (deeper.items.length) item.append(h("ul", null, deeper.items));
      items.push(item);
      next = deeper.next;
    }
    return { items, next };
  }

  function treeItem(session, state) {
    const attributes = { href: sessionAddress(app, session.id), dataset: { testid: "agent-item", state } };
    return h("li", null, h("a", attributes, labels(session, state)));
  }
}

const ENDED = new Set(["completed", "canceled", "failed", "interrupted", "ended"]);

/** The agent that a call started, at its place: a folded line that opens its conversation. `makeThread(sessionId)` is
 *  called when it is first opened. `status` is what the tool told of it. */
export function agentItem(app, status, makeThread) {
  const line = h("summary");
  const body = h("div.agent-body");
  const link = h("a.open", { href: sessionAddress(app, status.id) }, "Open");
  const details = h("details.agent", { dataset: { testid: "agent-inline" } }, line, body);
  const element = h("div.agent-line", null, details, link);
  let thread = null;
  let drawn = "";
  details.addEventListener("toggle", open);
  update();
  return { element, sessionId: status.id, update };

  async function open() {
    if (!details.open || thread) return;
    thread = makeThread(status.id);
    body.append(thread.element);
    try {
      await app.store.load(status.id);
      thread.update(null);
    } catch (error) {
      fill(body, h("p.failed", null, `Its conversation cannot be shown. ${error.message}`));
    }
  }

  function update(changes = null) {
    const session = app.store.sessions.get(status.id);
    const shown = session ?? { role: status.role, title: status.title ?? "", cost: status.cost ?? 0 };
    if (thread && changes) thread.update(changes);
    if (changes && drawn && !changesAgents(changes)) return; // with every word of it the line would be made anew
    const state = session ? agentState(app.store, session) : "ended";
    const now = JSON.stringify(row(shown, state, 0));
    if (now === drawn) return;
    drawn = now;
    details.dataset.state = state;
    fill(line, labels(shown, state));
  }
}

/** Whether these changes of the store may be about what agents are doing. */
export function changesAgents(changes) {
  const { sessions, runs, permissions, questions, reset } = changes;
  return sessions || runs || permissions || questions || reset;
}

function labels(session, state) {
  return [
    h("span.sign", { "aria-hidden": "true" }, SIGNS[state] ?? "·"),
    h("span.role", null, prose(session.role || "agent")),
    h("span.title", null, prose(titleOf(session))),
    h("span.state", null, WORDS[state] ?? state),
    session.cost ? h("span.cost", null, money(session.cost)) : null,
    session.branch ? h("code", { title: "the branch its work is on" }, prose(session.branch)) : null,
  ];
}

/** Without the role that the server puts before it: it stands there already. */
function titleOf({ title = "", role = "" }) {
  return role && title.startsWith(`${role}: `) ? title.slice(role.length + 2) : title;
}

function row(session, state, depth) {
  return [session.id, session.role, session.title, state, session.cost, session.branch, depth];
}

/** All sessions below one, in the order of a tree that is read downward. */
function below(store, sessionId, depth = 0) {
  if (depth > MAX_DEPTH) return [];
  return store.children(sessionId).flatMap((session) => [{ session, depth }, ...below(store, session.id, depth + 1)]);
}
