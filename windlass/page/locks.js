// Locks that say that somebody lives: held until their holder ends, however it ends. Who waits for one is told of that.

import { uuid } from "./identity.js";

/** Hold a lock of one's own until this tab or worker ends, and answer its name; "" where there are none (plain HTTP
 *  from another machine). */
export function holdLock(kind) {
  if (!navigator.locks) return Promise.resolve("");
  const name = `${kind}-${uuid()}`;
  return new Promise((held) => {
    navigator.locks.request(name, () => {
      held(name);
      return new Promise(() => {});
    }).catch(() => held(""));
  });
}

/** Call back when whoever holds this lock has ended. */
export function whenGone(name, callback) {
  navigator.locks?.request(name, callback).catch(() => {});
}
