// What each event of the stream does to the store. Kinds and fields that are not known here are ignored.

import { isEnded } from "./lookups.js";

const ANSWERED_KEPT = 50; // how cards that vanished were answered; nobody asks about older ones
const SESSION_EVENTS_KEPT = 5_000; // while a session is being loaded; more, and it is loaded again
const NO_PEOPLE = new Set(["policy", "grant", "skip", "limit", "plan mode"]); // who else decides about permissions

/** The function that applies one event. `parts` are the store's own: its maps, and what it does about gaps. */
export function createEventApplier(parts) {
  const { store, logs, mark, markMessage, setSession, reload, refetch } = parts;
  const { refreshSessions, refreshWorkspace, forget } = parts;
  let hello = null; // of the stream there is now
  const handlers = {
    hello: onHello,
    reset: () => reload(),
    message: onMessage,
    message_delta: onDelta,
    session: onSession,
    run: onRun,
    permission_request: ({ id, payload }) => onRequest(store.permissions, "permissions", id, payload),
    permission_notification: onPermissionNotification,
    question_batch_request: ({ id, payload }) => onRequest(store.questions, "questions", id, payload),
    question_batch_notification: onQuestionNotification,
    presence: onPresence,
    file: () => mark("files"),
    config_changed: () => refreshWorkspace(),
  };
  return (event) => handlers[event.kind]?.(event);

  /** What was going on when the stream began. Facts up to its head are history and do not undo what it said. */
  function onHello({ payload }) {
    hello = payload;
    replace(store.permissions, payload.permissions);
    replace(store.questions, payload.questions);
    for (const run of store.runs.values()) if (!isEnded(run)) store.runs.delete(run.id);
    payload.runs.forEach((run) => store.runs.set(run.id, run));
    mark("runs", "permissions", "questions");
    if (store.loaded) refreshSessions(); // not the first one: there was a gap before it
  }

  function isHistory(id) {
    if (!hello || !id) return false;
    const [epoch, number] = id.split(".");
    return epoch === hello.epoch && Number(number) <= hello.head;
  }

  // -- messages ------------------------------------------------------------------------------------------------------

  /** The session's log, when its messages are here; an event that comes while they are loaded is kept for later. */
  function logFor(event) {
    const entry = logs.get(event.payload.session_id);
    if (!entry) return null;
    if (entry.kept === null) return entry.log;
    entry.kept.push(event);
    if (entry.kept.length > SESSION_EVENTS_KEPT) {
      entry.kept.length = 0;
      entry.promise = null;
      store.load(event.payload.session_id).catch(() => {});
    }
    return null;
  }

  function onMessage(event) {
    const log = logFor(event);
    if (!log) return;
    if (event.change === "deleted") log.remove(event.payload.id);
    else log.put(event.payload);
    markMessage(event.payload.session_id, event.payload.id);
  }

  function onDelta(event) {
    const log = logFor(event);
    if (!log) return;
    const { session_id: sessionId, message_id: messageId } = event.payload;
    const grown = log.grow(event.payload);
    if (grown === "hole") refetch(sessionId, messageId);
    else if (grown) markMessage(sessionId, messageId);
  }

  // -- sessions and runs ---------------------------------------------------------------------------------------------

  function onSession({ id, change, payload }) {
    if (change === "deleted") return forget(payload.id);
    const known = store.sessions.get(payload.id);
    // Who watched back then says nothing about now.
    const watchers = isHistory(id) && known ? known.attached_clients : payload.attached_clients;
    setSession({ ...payload, attached_clients: watchers });
    mark("sessions");
  }

  function onRun({ id, payload }) {
    const known = store.runs.get(payload.id);
    if (isHistory(id) && !isEnded(payload)) return;
    if (known && isEnded(known) && !isEnded(payload)) return;
    store.runs.set(payload.id, payload);
    if (isEnded(payload) && !logs.has(payload.session_id)) dropEnded(payload);
    mark("runs");
  }

  /** Of sessions that are not shown only what is going on is kept, and of agents how they ended last. */
  function dropEnded({ id, session_id: sessionId }) {
    const isAgent = Boolean(store.sessions.get(sessionId)?.parent_session_id);
    for (const run of store.runs.values()) {
      const isOld = run.session_id === sessionId && isEnded(run) && !(isAgent && run.id === id);
      if (isOld) store.runs.delete(run.id);
    }
  }

  function onPresence({ payload }) {
    const session = store.sessions.get(payload.session_id);
    if (!session) return;
    store.sessions.set(session.id, { ...session, attached_clients: payload.attached_clients });
    mark("sessions");
  }

  // -- what waits for people -----------------------------------------------------------------------------------------

  function onRequest(pending, name, id, payload) {
    if (isHistory(id) && !pending.has(payload.id)) return; // answered since: the greeting would have it otherwise
    pending.set(payload.id, payload);
    mark(name);
  }

  function onPermissionNotification({ payload, by, time }) {
    if (payload.outcome === "asked") return;
    const was = store.permissions.delete(payload.id);
    // One comes for every call, also where a rule decided; those must not push out what people answered.
    if (was || (payload.id && payload.by && !NO_PEOPLE.has(payload.by.name))) {
      note(payload.id, { ...payload, by: payload.by ?? by, at: time });
    }
    mark("permissions");
  }

  function onQuestionNotification({ payload, by, time }) {
    if (payload.outcome === "asked") return;
    store.questions.delete(payload.batch_id);
    note(payload.batch_id, { ...payload, by: payload.by ?? by, at: time });
    mark("questions");
  }

  function note(id, how) {
    store.answered.delete(id);
    store.answered.set(id, how);
    if (store.answered.size > ANSWERED_KEPT) store.answered.delete(store.answered.keys().next().value);
  }
}

function replace(map, list) {
  map.clear();
  list.forEach((one) => map.set(one.id, one));
}
