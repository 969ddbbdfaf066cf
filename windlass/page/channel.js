// One workspace's stream for all tabs: opened, followed, found dead, opened again where it broke off.
//
// It runs in the shared worker (or in the page, where there is none), so there is no DOM here.

import { eventParser } from "./sse.js";

const SILENCE_MILLISECONDS = 40_000; // the server gives a sign of life every 15 s; TCP alone notices nothing for hours
const FIRST_RETRY_MILLISECONDS = 500;
const LONGEST_RETRY_MILLISECONDS = 5_000; // a person who looks at "reconnecting" does not want to wait longer
const REFUSALS = new Set([401, 403, 409, 422]); // trying again would be told the same

/** A channel. `deliver(events)` gets batches in order; `report(connection)` every change of its state. */
export function createChannel({ workspace, path, clientId, deliver, report }) {
  let cursor = ""; // of the last fact that was delivered
  let session = ""; // that the tab seen last shows
  let told = null; // the session that the server was told of, null when it is to be told
  let isTelling = false;
  let attempt = null; // {abort, wake}: while the stream is wanted
  let connection = { state: "connecting", since: Date.now(), reason: "" };
  const channel = { workspace, path, start, pause, nudge, look, connection: () => connection };
  return channel;

  function become(state, reason = "") {
    if (connection.state === state && connection.reason === reason) return;
    connection = { state, since: Date.now(), reason };
    report(connection);
  }

  function start() {
    if (attempt) return;
    const own = { stopped: false, abort: null, wake: null };
    attempt = own;
    become("connecting");
    follow(own);
  }

  /** Close the stream and stay closed. The cursor is kept, so that `start` goes on from there. */
  function pause(state = "paused") {
    const own = attempt;
    attempt = null;
    if (own) {
      own.stopped = true;
      own.abort?.abort();
      own.wake?.();
    }
    become(state);
  }

  /** Somebody looks, or the network is back: do not wait for the next retry. */
  function nudge() {
    attempt?.wake?.();
  }

  function look(wanted) {
    session = wanted;
    if (connection.state === "live") tellSession();
  }

  async function follow(own) {
    let failures = 0;
    while (!own.stopped) {
      let reason;
      try {
        await streamOnce(own, () => (failures = 0));
        reason = "the server closed the stream";
      } catch (error) {
        if (own.stopped) return;
        reason = error.message;
        if (error.refused) {
          become("refused", reason);
          await pauseFor(own, 24 * 3600 * 1000); // until somebody looks: then the browser may be signed in again
          continue;
        }
      }
      if (own.stopped) return;
      become("lost", reason);
      const longest = Math.min(LONGEST_RETRY_MILLISECONDS, FIRST_RETRY_MILLISECONDS * 2 ** failures++);
      // Half of it by chance: after a restart of the server its clients must not all come in the same moment.
      await pauseFor(own, longest / 2 + (Math.random() * longest) / 2);
    }
  }

  function pauseFor(own, milliseconds) {
    return new Promise((resume) => {
      const timer = setTimeout(resume, milliseconds);
      own.wake = () => {
        clearTimeout(timer);
        resume();
      };
    }).finally(() => (own.wake = null));
  }

  async function streamOnce(own, succeeded) {
    const abort = new AbortController();
    own.abort = abort;
    let heard = moments();
    const watch = setInterval(() => {
      if (since(heard) >= SILENCE_MILLISECONDS) abort.abort(new Error("the server fell silent"));
    }, SILENCE_MILLISECONDS / 4);
    try {
      const response = await open(abort.signal);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parse = eventParser();
      for (;;) {
        const { value, done } = await reader.read();
        heard = moments();
        if (done || own.stopped) return;
        const events = parse(value).map(envelope);
        if (events.length) take(events, succeeded);
      }
    } catch (error) {
      throw abort.signal.aborted && abort.signal.reason instanceof Error ? abort.signal.reason : plainer(error);
    } finally {
      clearInterval(watch);
      abort.abort();
    }
  }

  async function open(signal) {
    const response = await attach(signal);
    if (response.status !== 404) return checked(response);
    // The workspace was closed, or the server is a new one: opened by its path it is the same, and so is its log.
    if (path) await checked(await reopen(signal));
    return checked(await attach(signal));
  }

  function attach(signal) {
    const headers = cursor ? { "Last-Event-ID": cursor } : {};
    const address = `/v1/workspaces/${encodeURIComponent(workspace)}/events?client_id=${clientId}&deltas=1`;
    return fetch(address, { headers, signal, credentials: "same-origin", cache: "no-store" });
  }

  function reopen(signal) {
    const body = JSON.stringify({ path, client_id: clientId });
    const headers = { "Content-Type": "application/json" };
    return fetch("/v1/workspaces", { method: "POST", headers, body, signal, credentials: "same-origin" });
  }

  function take(events, succeeded) {
    for (const { id, kind, payload } of events) {
      if (id) cursor = id;
      else if (kind === "reset" || (kind === "hello" && !cursor)) cursor = `${payload.epoch}.${payload.head}`;
    }
    const greeted = events.some((event) => event.kind === "hello");
    if (greeted) {
      succeeded();
      become("live");
      tellSession();
    }
    deliver(events);
  }

  /** Presence belongs to the stream: a new one has to be told again. A browser that may only read is not counted. */
  async function tellSession() {
    told = null; // also what was told before: a window with a stream of its own may have said something else since
    // One at a time: of two under way the server may hear the older one last, and would believe it.
    if (isTelling) return;
    isTelling = true;
    try {
      while (told !== session && connection.state === "live") {
        const telling = session;
        await postSession(telling);
        told = telling;
      }
    } catch {
      // The server cannot be reached: the next stream tells it.
    } finally {
      isTelling = false;
    }
  }

  function postSession(telling) {
    const address = `/v1/workspaces/${encodeURIComponent(workspace)}/current-session?client_id=${clientId}`;
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ session_id: telling });
    // With the stream's signal: one that hangs must not outlast what it is about.
    return fetch(address, { method: "POST", headers, body, credentials: "same-origin", signal: attempt?.abort.signal });
  }
}

/** Two clocks: one stands still while a laptop sleeps, the other jumps when somebody sets it. */
function moments() {
  return [Date.now(), performance.now()];
}

function since([wall, steady]) {
  return Math.max(Date.now() - wall, performance.now() - steady);
}

function envelope({ id, data }) {
  const { type, payload, by, time } = JSON.parse(data);
  return { id, kind: type, change: payload.type, payload: payload.payload, by, time };
}

async function checked(response) {
  if (response.ok) return response;
  const error = new Error(await words(response));
  error.refused = REFUSALS.has(response.status);
  throw error;
}

async function words(response) {
  if (response.status === 401) return "this browser is not signed in any more; run `windlass pair` and open its link";
  try {
    return (await response.json()).message;
  } catch {
    return `the server answered ${response.status}`;
  }
}

function plainer(error) {
  return error.refused !== undefined ? error : new Error("the server cannot be reached");
}
