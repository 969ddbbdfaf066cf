// The shared worker: one for all tabs of this browser, gone with the last of them. All it does is hand tabs to the hub.

import { createHub } from "./hub.js";
import { holdLock } from "./locks.js";

const waiting = []; // ports of tabs that came before there was a hub
let hub = null;
globalThis.onconnect = ({ ports }) => (hub ? hub.connect(ports[0]) : waiting.push(ports[0]));

holdLock("windlass-hub").then((lock) => {
  hub = createHub({ lock });
  waiting.forEach((port) => hub.connect(port));
});
