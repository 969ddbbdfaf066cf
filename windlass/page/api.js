// The HTTP API as functions: one per route, each answers parsed JSON or throws an ApiError that a person can read.

const REQUEST_MILLISECONDS = 120_000; // deleting a session waits for its runs to end
const RETRY_MILLISECONDS = [300, 1_000, 2_000]; // a server that restarts is back by then

/** What went wrong, in the server's words. `status` is 0 when the server could not be reached at all. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** The API for this client. `api.workspace` is the id of the open workspace; the routes below it go there. */
export function createApi(clientId) {
  const api = { workspace: "", clientId };
  const inWorkspace = (path) => `/v1/workspaces/${encodeURIComponent(api.workspace)}${path}`;
  const inSession = (id, path = "") => inWorkspace(`/sessions/${encodeURIComponent(id)}${path}`);
  const inAgent = (id, path) => inWorkspace(`/agent/sessions/${encodeURIComponent(id)}${path}`);
  const inRun = (id, path = "") => inWorkspace(`/runs/${encodeURIComponent(id)}${path}`);

  const read = (path, query) => patiently(() => send("GET", path, { query }));
  const change = (method, path, body, options) =>
    send(method, path, { body, query: { client_id: clientId }, ...options });

  return Object.assign(api, {
    /** Open workspaces; with `all` also those that the server remembers. */
    workspaces: (all = false) => read("/v1/workspaces", all ? { all: 1 } : {}),
    openWorkspace: (path) => change("POST", "/v1/workspaces", { path, client_id: clientId }),
    version: () => read("/v1/version"),
    markdown: async (texts) => (await send("POST", "/v1/markdown", { body: { texts } })).html,

    sessions: (parent = "") => read(inWorkspace("/sessions"), { parent }),
    createSession: (title = "") => change("POST", inWorkspace("/sessions"), { title }),
    session: (id) => read(inSession(id)),
    rename: (id, title) => change("PUT", inSession(id), { title }),
    deleteSession: (id) => change("DELETE", inSession(id)),
    messages: (id, { after = "", limit = "" } = {}) => read(inSession(id, "/messages"), { after, limit }),
    fileHistory: (id) => read(inSession(id, "/history")),
    undo: (id, runId) => change("POST", inSession(id, "/undo"), { run_id: runId }),
    setPlan: (id, on) => change("POST", inSession(id, "/plan"), { plan: on }),

    /** Send a prompt. Its `run_id` makes it safe to send again when the answer was lost: it is the same run. */
    prompt: (body) => patiently(() => change("POST", inWorkspace("/agent"), body)),
    cancel: (sessionId) => change("POST", inAgent(sessionId, "/cancel")),
    cancelRun: (runId) => change("POST", inRun(runId, "/cancel")),
    runs: ({ session = "", state = "", after = "", limit = "" } = {}) =>
      read(inWorkspace("/runs"), { session, state, after, limit }),
    run: (id) => read(inRun(id)),
    queue: (sessionId) => read(inAgent(sessionId, "/prompts/list"), { full: 1 }),
    removeQueued: (runId) => change("DELETE", inRun(runId)),
    summarize: (id) => change("POST", inAgent(id, "/summarize"), undefined, { patient: true }),
    shell: (id, command) => change("POST", inAgent(id, "/shell"), { command }, { patient: true }),

    permissions: () => read(inWorkspace("/permissions")),
    grant: (id, action, pattern = "") =>
      change("POST", inWorkspace("/permissions/grant"), { permission: { id }, action, ...(pattern && { pattern }) }),
    skipped: async () => (await read(inWorkspace("/permissions/skip"))).skip,
    skip: (on) => change("POST", inWorkspace("/permissions/skip"), { skip: on }),
    questions: () => read(inWorkspace("/questions")),
    answer: (batchId, responses) =>
      change("POST", inWorkspace("/questions/answer"), { batch_request_id: batchId, responses }),
    declineQuestions: (batchId) => change("POST", inWorkspace("/questions/cancel"), { batch_request_id: batchId }),

    search: (q, limit = "") => read(inWorkspace("/search"), { q, limit }),
    timeline: (runId) => read(inRun(runId, "/timeline")),
  });
}

async function send(method, path, { query = {}, body, patient = false } = {}) {
  const address = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) if (value !== "") address.searchParams.set(name, value);
  const options = { method, credentials: "same-origin", cache: "no-store", headers: {} };
  // A summary or a command answers when it is done, however long that takes.
  if (!patient) options.signal = AbortSignal.timeout(REQUEST_MILLISECONDS);
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address, options);
    if (response.ok) return await parsed(response);
  } catch (error) {
    if (error.name === "TimeoutError") throw new ApiError(0, "The server took too long to answer. Try again.");
    throw new ApiError(0, "The server cannot be reached. Is it running?");
  }
  throw new ApiError(response.status, await reason(response));
}

async function parsed(response) {
  const text = await response.text();
  return text === "" ? null : JSON.parse(text);
}

async function reason(response) {
  if (response.status === 401) return "This browser is not signed in any more. Run `windlass pair` and open its link.";
  try {
    return (await response.json()).message || response.statusText;
  } catch {
    return `The server answered ${response.status} ${response.statusText}`.trim();
  }
}

/** Try again, a few times, when the server could not be reached. Only for what may be sent twice. */
async function patiently(attempt) {
  for (const pause of RETRY_MILLISECONDS) {
    try {
      return await attempt();
    } catch (error) {
      if (error.status !== 0 && error.status !== 503) throw error;
      await new Promise((resume) => setTimeout(resume, pause));
    }
  }
  return attempt();
}
