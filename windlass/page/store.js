// The state of the one workspace that is open in this tab: loaded over REST, kept true by the hub's events.
//
// The order is what makes it right: join the hub, keep its events aside, load, then apply them. An event that is older
// than what was loaded is followed by all the newer ones, so the end is the same.

import { createChanges } from "./changes.js";
import { createEventApplier } from "./events.js";
import { createLookups } from "./lookups.js";
import { createMessageLog } from "./message_log.js";

const KEPT_EVENTS = 20_000; // while something is being loaded; more, and it is loaded again instead
const LOADED_SESSIONS = 30; // whose messages are kept; the one that was not looked at for longest goes
const RUN_PAGE = 1_000; // runs asked for at once
const RUN_PAGES = 5; // of one session; older runs lose their closing line, nothing else
const AGENT_DEPTH = 3; // agents of agents of agents; the server allows no deeper
const AGENT_STATES = 40; // agents of one session, the newest, whose last run is asked for: a request each
const AGAIN_MILLISECONDS = 5_000; // after which what could not be loaded is asked for again
const ACTIVE_STATES = ["accepted", "queued", "running", "waiting"];

/** The store. `open(workspace)` begins, `receive` is what the link calls, `watch` tells of changes once per frame. */
export function createStore(api) {
  const logs = new Map(); // session id -> {log, promise, kept, loaded, ...}; the one used last is at the end
  const { mark, markMessage, watch } = createChanges();
  let opened = null; // {} of this opening, so that an answer that comes late is not taken for the next one's
  let liveWaiters = []; // resolved when the stream is live
  let again = 0; // the timer that loads what could not be loaded
  let loads = 0; // how often the lists were asked for: only the last answer counts
  let stale = new Set(); // sessions of before a gap: what is loaded is newer than what is known
  let kept = null; // events kept aside while everything is being loaded; null when they are applied at once

  const store = {
    workspace: null,
    connection: { state: "connecting", since: Date.now(), reason: "" },
    sessions: new Map(),
    runs: new Map(),
    permissions: new Map(),
    questions: new Map(),
    answered: new Map(),
    shown: "", // the session that is looked at: its messages are never dropped
    isSkipping: false, // whether nobody is asked for permission in this workspace
    loaded: false, // whether the lists are there
    problem: "", // why they are not
    open, close, messages, load, reload, isLoaded, watch,
    receive: { connection: onConnection, events: onEvents, gone: onGone },
  };
  Object.assign(store, createLookups(store));
  const apply = createEventApplier({
    store, logs, mark, markMessage, setSession, reload, refetch, refreshSessions, refreshWorkspace, forget,
  });
  return store;

  // -- opening -------------------------------------------------------------------------------------------------------

  /** Show another workspace. Its lists are loaded as soon as its stream is live. */
  function open(workspace) {
    clear();
    opened = {};
    kept = [];
    store.workspace = workspace;
    store.connection = { state: "connecting", since: Date.now(), reason: "" };
    mark("reset", "connection");
  }

  function close() {
    clear();
    opened = null;
    kept = null;
    store.workspace = null;
    mark("reset");
  }

  function clear() {
    const { sessions, runs, permissions, questions, answered } = store;
    for (const map of [sessions, runs, permissions, questions, answered, logs, stale]) map.clear();
    store.loaded = false;
    store.isSkipping = false;
    store.problem = "";
    clearTimeout(again);
  }

  function onConnection(connection) {
    store.connection = connection;
    mark("connection");
    if (connection.state !== "live") return;
    loadMissing();
    const waiters = liveWaiters;
    liveWaiters = [];
    waiters.forEach((resume) => resume());
  }

  /** The hub does not know this tab any more, and events were missed. What is there is loaded again once it is live. */
  function onGone() {
    store.loaded = false;
    loads += 1; // an answer that is on its way is from before the gap, and must not count as what is loaded after it
    onConnection({ state: "connecting", since: Date.now(), reason: "" });
  }

  /** Ask again for everything that could not be loaded. Without this its events would be kept aside for ever. */
  function loadMissing() {
    if (!opened || store.connection.state !== "live") return;
    if (!store.loaded) return void reload();
    for (const [sessionId, entry] of [...logs]) if (!entry.promise) load(sessionId).catch(() => {});
  }

  function loadMissingLater() {
    clearTimeout(again);
    again = setTimeout(loadMissing, AGAIN_MILLISECONDS);
  }

  /** Nothing is loaded before its changes are listened to: what happened in between would be missed for good. */
  function whenLive() {
    if (store.connection.state === "live") return Promise.resolve();
    return new Promise((resume) => liveWaiters.push(resume));
  }

  function onEvents(events) {
    if (!opened) return;
    if (kept === null) return events.forEach(apply);
    kept.push(...events);
    if (kept.length > KEPT_EVENTS) kept.splice(0, kept.length, { kind: "reset" });
  }

  /** Load everything again: the stream could not say what happened in between. */
  function reload() {
    if (!opened) return;
    kept ??= [];
    store.runs.clear();
    stale = new Set(store.sessions.keys());
    for (const [sessionId, entry] of [...logs]) { // a copy: loading moves the entry to the end, and it would never end
      if (entry.isWaiting) continue; // it has not been asked for yet
      entry.promise = null;
      entry.kept ??= [];
      load(sessionId).catch(() => {});
    }
    mark("reset");
    return loadLists();
  }

  async function loadLists() {
    const own = opened;
    const number = ++loads;
    try {
      const [sessions, permissions, questions, isSkipping, ...runs] = await Promise.all([
        api.sessions(),
        api.permissions(),
        api.questions(),
        api.skipped(),
        ...ACTIVE_STATES.map((state) => api.runs({ state, limit: RUN_PAGE })),
      ]);
      if (own !== opened || number !== loads) return;
      replace(store.permissions, permissions);
      replace(store.questions, questions);
      store.isSkipping = isSkipping;
      sessions.forEach(setSession);
      // What is still stale was deleted meanwhile. One that was begun just now is in neither list, and stays.
      for (const id of stale) if (!store.sessions.get(id)?.parent_session_id) store.sessions.delete(id);
      runs.flat().forEach(addRun);
      const waiting = kept ?? [];
      kept = null;
      waiting.forEach(apply);
      store.loaded = true;
      store.problem = "";
    } catch (error) {
      if (own !== opened || number !== loads) return;
      store.problem = error.message;
      store.loaded = false;
      loadMissingLater();
    }
    mark("connection", "sessions", "runs", "permissions", "questions", "files");
  }

  // -- messages ------------------------------------------------------------------------------------------------------

  /** The messages of a session in order; [] until they are loaded. */
  function messages(sessionId) {
    return logs.get(sessionId)?.log.list ?? [];
  }

  function isLoaded(sessionId) {
    return logs.get(sessionId)?.loaded ?? false;
  }

  /** Load a session's messages, runs and agents, once; later changes come by events. Throws when it is not there. */
  function load(sessionId) {
    const entry = logs.get(sessionId) ?? newEntry();
    logs.delete(sessionId); // to the end: used last
    logs.set(sessionId, entry);
    for (const oldest of [...logs.keys()]) {
      if (logs.size <= LOADED_SESSIONS) break;
      if (oldest !== store.shown) logs.delete(oldest); // many of its agents may have been opened since
    }
    entry.promise ??= fetchSession(sessionId, entry).catch((error) => {
      entry.promise = null; // so that the next call tries again
      if (logs.get(sessionId) === entry && !entry.loaded) logs.delete(sessionId);
      if (entry.loaded) loadMissingLater();
      throw error;
    });
    return entry.promise;
  }

  async function fetchSession(sessionId, entry) {
    const own = opened;
    const number = (entry.loads += 1);
    entry.isWaiting = true;
    await whenLive();
    entry.isWaiting = false;
    if (own !== opened) return;
    const [found, list] = await Promise.all([
      api.session(sessionId), api.messages(sessionId), fetchRuns(sessionId), fetchChildren(sessionId, AGENT_DEPTH),
    ]);
    if (own !== opened || logs.get(sessionId) !== entry) return;
    if (number !== entry.loads) return entry.promise; // it was asked for once more: that answer counts
    addSession(found);
    entry.log.replaceAll(list);
    entry.loaded = true;
    const waiting = entry.kept ?? [];
    entry.kept = null;
    waiting.forEach(apply);
    mark("sessions");
    if (list.length === 0) markMessage(sessionId, "");
    for (const message of list) markMessage(sessionId, message.id);
  }

  async function fetchRuns(sessionId) {
    const own = opened;
    let after = "";
    for (let page = 0; page < RUN_PAGES; page += 1) {
      const runs = await api.runs({ session: sessionId, after, limit: RUN_PAGE });
      if (own !== opened) return;
      runs.forEach(addRun);
      mark("runs");
      if (runs.length < RUN_PAGE) return;
      after = runs.at(-1).id;
    }
  }

  async function fetchChildren(sessionId, depth) {
    const own = opened;
    const found = await api.sessions(sessionId);
    if (own !== opened) return;
    found.forEach(addSession);
    if (found.length) mark("sessions");
    await Promise.all(newest(found).map((session) => fetchLastRuns(session.id)));
    if (depth > 1) await Promise.all(found.map((session) => fetchChildren(session.id, depth - 1)));
  }

  /** How an agent ended, which its session does not say. One page: a session with more runs is no mere agent. */
  async function fetchLastRuns(sessionId) {
    const own = opened;
    const runs = await api.runs({ session: sessionId, limit: RUN_PAGE });
    if (own !== opened) return;
    runs.slice(-1).forEach(addRun);
    mark("runs");
  }

  /** A piece of a message was missed: ask for that message again. What comes meanwhile is applied to the answer: it
   *  would be missing there, and the message would be asked for again and again. */
  async function refetch(sessionId, messageId) {
    const entry = logs.get(sessionId);
    if (!entry?.loaded || entry.kept) return;
    const number = entry.loads;
    entry.kept = [];
    try {
      const known = entry.log.has(messageId);
      const after = known ? entry.log.before(messageId) : entry.log.list.at(-1)?.id ?? "";
      const found = await api.messages(sessionId, { after, limit: known ? 1 : RUN_PAGE });
      if (logs.get(sessionId) !== entry) return;
      for (const message of found) {
        entry.log.put(message);
        markMessage(sessionId, message.id);
      }
    } catch {
      // The stream will be lost too, and everything is caught up when it is back.
    }
    if (logs.get(sessionId) !== entry || number !== entry.loads) return; // all of it is being loaded: that will do it
    const waiting = entry.kept ?? [];
    entry.kept = null;
    waiting.forEach(apply);
  }

  /** Who watches what is told only to those who listen: after a gap it has to be asked for. */
  async function refreshSessions() {
    const own = opened;
    try {
      const found = await api.sessions();
      if (own !== opened) return;
      for (const session of found) {
        const known = store.sessions.get(session.id);
        // One that is not known was deleted just now; a new one comes by its event.
        if (known) store.sessions.set(session.id, { ...known, attached_clients: session.attached_clients });
      }
      mark("sessions");
    } catch {
      // Only the number of watchers is stale.
    }
  }

  /** The configuration was read again: another model, perhaps, or nobody is asked any more. */
  async function refreshWorkspace() {
    const own = opened;
    try {
      const [workspaces, isSkipping] = await Promise.all([api.workspaces(), api.skipped()]);
      const found = workspaces.find((workspace) => workspace.id === store.workspace?.id);
      if (own !== opened) return;
      store.workspace = found ?? store.workspace;
      store.isSkipping = isSkipping;
      mark("connection");
    } catch {
      // What is shown is what was configured before.
    }
  }

  // What is known is kept true by events; an answer that was on its way meanwhile must not undo them. So what is loaded
  // only adds what is not known, or replaces what is from before a gap.

  function addRun(run) {
    if (!store.runs.has(run.id)) store.runs.set(run.id, run);
  }

  function addSession(session) {
    if (!store.sessions.has(session.id) || stale.has(session.id)) setSession(session);
  }

  function setSession(session) {
    stale.delete(session.id);
    store.sessions.set(session.id, session);
  }

  /** A session was deleted: nothing of it is left. */
  function forget(sessionId) {
    store.sessions.delete(sessionId);
    logs.delete(sessionId);
    for (const map of [store.runs, store.permissions, store.questions]) {
      for (const one of map.values()) if (one.session_id === sessionId) map.delete(one.id);
    }
    mark("sessions", "runs", "permissions", "questions");
  }
}

/** The agents that began last, as many as are asked about. */
function newest(sessions) {
  return [...sessions].sort((one, other) => other.created_at - one.created_at).slice(0, AGENT_STATES);
}

function replace(map, list) {
  map.clear();
  list.forEach((one) => map.set(one.id, one));
}

/** A session's messages before they are loaded: events are kept until then. */
function newEntry() {
  return { log: createMessageLog(), kept: [], promise: null, loaded: false, loads: 0, isWaiting: false };
}
