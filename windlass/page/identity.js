// Ids that are made in the browser: who this browser is for the server, and the ids of runs.

const CLIENT_KEY = "windlass.client";

/** A random UUID. `crypto.randomUUID` is missing where the page came over plain HTTP from another machine. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** The same for all tabs of this browser: they share one stream, so for the server they are one client. */
export function clientId() {
  const known = recall(CLIENT_KEY);
  if (/^[0-9a-f-]{36}$/.test(known)) return known;
  const made = uuid();
  remember(CLIENT_KEY, made);
  return made;
}

/** What this browser remembers under a name; "" for nothing, also where storage is switched off. */
export function recall(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** Remember a text in this browser; without storage it is simply forgotten. */
export function remember(key, text) {
  try {
    if (text === "") localStorage.removeItem(key);
    else localStorage.setItem(key, text);
  } catch {
    // A browser that keeps nothing still works; it asks again next time.
  }
}
