// Where one is in the page, as the address's hash: `#/w/<workspace>/s/<session>/run/<run>` or `.../m/<message>`.

/** The parts of a hash; "" for what is not in it. */
export function parseRoute(hash) {
  const names = { w: "workspace", s: "session", run: "run", m: "message" };
  const route = { workspace: "", session: "", run: "", message: "" };
  const pieces = hash.replace(/^#\/?/, "").split("/");
  for (let index = 0; index + 1 < pieces.length; index += 2) {
    const name = Object.hasOwn(names, pieces[index]) && names[pieces[index]];
    if (name) route[name] = decoded(pieces[index + 1]);
  }
  return route;
}

/** The hash for a workspace, a session in it, and a run or a message of that. */
export function routeTo({ workspace = "", session = "", run = "", message = "" } = {}) {
  if (!workspace) return "#/";
  let hash = `#/w/${encodeURIComponent(workspace)}`;
  if (session) hash += `/s/${encodeURIComponent(session)}`;
  if (session && run) hash += `/run/${encodeURIComponent(run)}`;
  else if (session && message) hash += `/m/${encodeURIComponent(message)}`;
  return hash;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // somebody typed it
  }
}
