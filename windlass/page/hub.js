// One stream for all tabs. A browser allows six connections to a server; eight tabs with a stream each would leave none
// for anything else. So the tabs of a browser join one hub, in a shared worker, and it has at most four streams: those
// of the workspaces that were looked at last. The others wait, and catch up by their cursor when somebody looks again.
//
// tab -> hub: {type: "join", workspace, path, clientId, lock, visible, session}, {type: "look", session}, "seen",
//             "hidden", "bye", "pong"
// hub -> tab: {type: "hub", lock}, {type: "connection", connection}, {type: "events", events},
//             {type: "notify", event}, "gone", "ping"

import { createChannel } from "./channel.js";

const STREAMS = 4; // of six connections; requests need the other two
const PING_MILLISECONDS = 60_000; // only where there are no locks; a frozen tab answers late, so it has three tries
const PINGS_MISSED = 3;
const REMEMBERED_NOTICES = 200; // requests that somebody was told of, so that a reconnect does not tell them again

/** A hub. `alone`: it lives in one page, which needs no stream while nobody sees it (other pages have their own).
 *  `lock`: the name of the lock that it holds as long as it lives, "" for none. */
export function createHub({ alone = false, lock: ownLock = "" } = {}) {
  const tabs = new Map(); // port -> {workspace, channel, visible, missed}
  const channels = new Map(); // workspace id -> {channel, seen, told}
  const watched = new WeakSet(); // ports whose tab's lock is waited for
  let clock = 0; // counts looks, so that the channels can be ordered by the last one
  let pinging = null;
  globalThis.addEventListener?.("online", () => channels.forEach(({ channel }) => channel.nudge()));
  return { connect };

  function connect(port) {
    port.onmessage = ({ data }) => receive(port, data);
    port.start?.();
    if (ownLock) port.postMessage({ type: "hub", lock: ownLock });
  }

  function receive(port, message) {
    const tab = tabs.get(port);
    if (message.type === "join") return join(port, message);
    if (!tab) return message.type === "seen" ? port.postMessage({ type: "gone" }) : undefined;
    if (message.type === "seen") return see(tab, true);
    if (message.type === "hidden") return see(tab, false);
    if (message.type === "look") return look(tab, message.session);
    if (message.type === "pong") tab.missed = 0;
    if (message.type === "bye") leave(port);
  }

  function join(port, { workspace, path, clientId, lock, visible, session }) {
    const before = tabs.get(port);
    const entry = channels.get(workspace) ?? begin(workspace, path, clientId);
    const tab = { port, entry, visible, session, missed: 0, pinged: !lock };
    tabs.set(port, tab);
    if (before) release(before); // after it is in the new place: a stream that goes on need not be opened again
    port.postMessage({ type: "connection", connection: entry.channel.connection() });
    if (lock) noticeEnd(port, lock);
    else startPinging();
    see(tab, visible);
  }

  function begin(workspace, path, clientId) {
    const entry = { seen: 0, told: new Set() };
    const post = (message) => tabsOf(entry).forEach(({ port }) => port.postMessage(message));
    entry.channel = createChannel({
      workspace,
      path,
      clientId,
      report: (connection) => post({ type: "connection", connection }),
      deliver: (events) => {
        post({ type: "events", events });
        events.forEach((event) => tell(entry, event));
      },
    });
    channels.set(workspace, entry);
    return entry;
  }

  function tabsOf(entry) {
    return [...tabs.values()].filter((tab) => tab.entry === entry);
  }

  function see(tab, visible) {
    tab.visible = visible;
    if (visible || !tab.entry.seen) tab.entry.seen = ++clock;
    if (visible) tab.entry.channel.look(tab.session);
    balance();
    if (visible) tab.entry.channel.nudge();
  }

  function look(tab, session) {
    tab.session = session;
    // Tabs of one browser are one client, which looks at one session: that of the tab in front.
    if (tab.visible || tabsOf(tab.entry).length === 1) tab.entry.channel.look(session);
  }

  /** The channels seen last have streams. */
  function balance() {
    const ordered = [...channels.values()].sort((one, other) => other.seen - one.seen);
    ordered.forEach((entry, index) => {
      const asleep = alone && !tabsOf(entry).some((tab) => tab.visible);
      if (index < STREAMS && !asleep) entry.channel.start();
      else entry.channel.pause();
    });
  }

  function leave(port) {
    const tab = tabs.get(port);
    if (!tab) return;
    tabs.delete(port);
    release(tab);
  }

  /** What a tab that went leaves behind: a stream that nobody reads is closed, and presence is another tab's. */
  function release(tab) {
    const others = tabsOf(tab.entry);
    if (others.length === 0) {
      channels.delete(tab.entry.channel.workspace);
      tab.entry.channel.pause();
    } else if (tab.visible) {
      const next = others.find((other) => other.visible) ?? others[0];
      tab.entry.channel.look(next.session);
    }
    balance();
  }

  // -- tabs that end without a word ----------------------------------------------------------------------------------

  /** A tab holds a lock as long as it lives: when we get it, the tab is gone, however it went. */
  function noticeEnd(port, lock) {
    if (watched.has(port)) return; // it has joined before
    watched.add(port);
    navigator.locks.request(lock, () => leave(port)).catch(() => {});
  }

  function startPinging() {
    pinging ??= setInterval(() => {
      const pinged = [...tabs.values()].filter((tab) => tab.pinged);
      if (pinged.length === 0) {
        clearInterval(pinging);
        pinging = null;
      }
      for (const tab of pinged) {
        if (++tab.missed > PINGS_MISSED) leave(tab.port);
        else tab.port.postMessage({ type: "ping" });
      }
    }, PING_MILLISECONDS);
  }

  // -- notices -------------------------------------------------------------------------------------------------------

  /** When nobody looks at any tab of the workspace, one tab, and only one, is asked to tell the person. */
  function tell(entry, event) {
    for (const [id, notice] of notices(event)) {
      if (entry.told.has(id)) continue;
      entry.told.add(id);
      if (entry.told.size > REMEMBERED_NOTICES) entry.told.delete(entry.told.values().next().value);
      const candidates = tabsOf(entry);
      if (candidates.length && !candidates.some((tab) => tab.visible)) {
        candidates[0].port.postMessage({ type: "notify", event: notice });
      }
    }
  }
}

/** What of an event a person may want to be told: [key, {kind, payload}] each. */
function notices({ kind, payload }) {
  if (kind === "permission_request" || kind === "question_batch_request") return [[payload.id, { kind, payload }]];
  if (kind === "run_complete") return [[`run ${payload.run_id}`, { kind, payload }]];
  if (kind !== "hello") return [];
  const waiting = payload.permissions.map((one) => [one.id, { kind: "permission_request", payload: one }]);
  return waiting.concat(payload.questions.map((one) => [one.id, { kind: "question_batch_request", payload: one }]));
}
