// A tab's end of the hub: joins, says when it is seen and when it goes, and joins again when the hub lost it.

import { createHub } from "./hub.js";
import { holdLock, whenGone } from "./locks.js";
import { trustedWorkerAddress } from "./trusted.js";

const WORKERS = 3; // that may die under a tab; then it does without one
const ANSWER_MILLISECONDS = 5_000; // a worker that says nothing for so long was already ending when we came

/** A link. `handlers`: `connection(state)`, `events(list)`, `notify(event)`, `gone()`: events were missed. */
export function createLink(clientId, handlers) {
  let joined = null; // the last join, to be said again
  let isSaid = false; // whether the hub was told of it: it takes nothing else before
  let session = "";
  let isPaused = false;
  let workers = 0;
  let silence = 0; // the timer that ends when the hub first says something
  let port = null;
  let version = ""; // of the page, as far as this tab knows
  let lock = "";
  const lockHeld = holdLock("windlass-tab").then((name) => (lock = name));

  document.addEventListener("visibilitychange", () => say({ type: isVisible() ? "seen" : "hidden" }));
  addEventListener("focus", () => say({ type: "seen" })); // of two windows side by side one is looked at
  addEventListener("pointerdown", () => isPaused && say({ type: "seen" }), { capture: true, passive: true });
  addEventListener("pagehide", () => say({ type: "bye" }));
  addEventListener("pageshow", (event) => event.persisted && joinAgain()); // back from the browser's page cache
  addEventListener("online", () => isVisible() && say({ type: "seen" }));

  return { join, leave, look };

  /** Follow a workspace. `serverVersion` names the worker: tabs of an older page keep theirs, since the new one may
   *  speak otherwise. */
  async function join(workspace, path, serverVersion) {
    const own = { workspace, path };
    joined = own;
    version ||= serverVersion;
    if (!port) openHub();
    await lockHeld; // a tab that is not known by its lock would be pinged for as long as it lives
    if (joined !== own) return;
    isSaid = true;
    port.postMessage({ type: "join", workspace, path, clientId, lock, visible: isVisible(), session });
  }

  function leave() {
    say({ type: "bye" });
    joined = null;
    isSaid = false;
  }

  /** Say which session this tab shows, so that others see who watches. */
  function look(wanted) {
    session = wanted;
    say({ type: "look", session });
  }

  function say(message) {
    if (isSaid) port.postMessage(message);
  }

  function joinAgain() {
    if (!joined) return;
    isSaid = false;
    handlers.gone();
    join(joined.workspace, joined.path);
  }

  function listen() {
    port.onmessage = ({ data }) => {
      clearTimeout(silence);
      if (data.type === "ping") say({ type: "pong" });
      else if (data.type === "hub") whenGone(data.lock, useOtherHub);
      else if (data.type === "gone") joinAgain();
      else if (!joined) return;
      else if (data.type === "connection") onConnection(data.connection);
      else if (data.type === "events") handlers.events(data.events);
      else if (data.type === "notify") handlers.notify(data.event);
    };
  }

  function onConnection(connection) {
    isPaused = connection.state === "paused";
    handlers.connection(connection);
  }

  /** The worker could not be loaded: this page does it by itself. */
  function useOwnHub() {
    clearTimeout(silence);
    port = ownHubPort();
    listen();
    joinAgain();
  }

  /** The worker is gone, and nobody would tell us anything any more. */
  function useOtherHub() {
    port.postMessage({ type: "bye" }); // should it live after all, it need not have a stream for us
    port.onmessage = null;
    openHub();
    joinAgain();
  }

  function openHub() {
    workers += 1;
    port = workers > WORKERS ? ownHubPort() : openPort(version, useOwnHub);
    listen();
    clearTimeout(silence);
    if (workers <= WORKERS) silence = setTimeout(useOtherHub, ANSWER_MILLISECONDS);
  }
}

function openPort(version, onFailure) {
  if (typeof SharedWorker === "undefined") return ownHubPort();
  try {
    const worker = new SharedWorker(trustedWorkerAddress(), { type: "module", name: `windlass ${version}` });
    worker.onerror = onFailure;
    return worker.port;
  } catch {
    return ownHubPort();
  }
}

function ownHubPort() {
  const { port1, port2 } = new MessageChannel();
  createHub({ alone: true }).connect(port1);
  return port2;
}

function isVisible() {
  return document.visibilityState === "visible";
}
