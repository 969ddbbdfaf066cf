// What changed in the store, collected and told once per frame: a stream has hundreds of events a second.

const HIDDEN_MILLISECONDS = 100; // between two updates of a page that nobody sees: it gets no animation frames

/** A collector: `mark` and `markMessage` note what changed, `watch` is told. */
export function createChanges() {
  const watchers = new Set();
  let changes = noChanges();
  let scheduled = null;
  return { mark, markMessage, watch };

  /** Call back with what changed, at most once per frame. Answers a function that ends it. */
  function watch(callback) {
    watchers.add(callback);
    return () => watchers.delete(callback);
  }

  function mark(...names) {
    for (const name of names) changes[name] = true;
    schedule();
  }

  function markMessage(sessionId, messageId) {
    let ids = changes.messages.get(sessionId);
    if (!ids) changes.messages.set(sessionId, (ids = new Set()));
    if (messageId) ids.add(messageId);
    schedule();
  }

  function schedule() {
    if (scheduled) return;
    // Both: a page that is hidden after this gets no frame any more, one that is seen must not wait for the timer.
    scheduled = { frame: requestAnimationFrame(flush), timer: setTimeout(flush, HIDDEN_MILLISECONDS) };
  }

  function flush() {
    cancelAnimationFrame(scheduled.frame);
    clearTimeout(scheduled.timer);
    scheduled = null;
    const told = changes;
    changes = noChanges();
    for (const callback of watchers) callback(told);
  }
}

function noChanges() {
  const names = ["connection", "sessions", "runs", "permissions", "questions", "files", "reset"];
  return { ...Object.fromEntries(names.map((name) => [name, false])), messages: new Map() };
}
