// Questions about what the store knows, answered from its maps. Pure: nothing is changed and nothing asked for here.

const AGENT_DEPTH = 3; // agents of agents of agents; the server allows no deeper
const ENDED_STATES = new Set(["completed", "canceled", "failed", "interrupted"]);

/** Whether a run is over. */
export function isEnded(run) {
  return ENDED_STATES.has(run.state);
}

/** The questions, as functions over a store's `sessions`, `runs`, `permissions` and `questions`. */
export function createLookups(store) {
  return { roots, children, rootOf, runsOf, activeRun, queued, waiting };

  /** Top-level sessions, the one that changed last first. */
  function roots() {
    const found = [...store.sessions.values()].filter((session) => !session.parent_session_id);
    return found.sort((one, other) => other.updated_at - one.updated_at || (one.id < other.id ? 1 : -1));
  }

  /** The sessions of a session's agents, oldest first. */
  function children(sessionId) {
    const found = [...store.sessions.values()].filter((session) => session.parent_session_id === sessionId);
    return found.sort((one, other) => one.created_at - other.created_at || (one.id < other.id ? -1 : 1));
  }

  /** The top-level session above this one. */
  function rootOf(sessionId) {
    let id = sessionId;
    for (let depth = 0; depth <= AGENT_DEPTH; depth += 1) {
      const parent = store.sessions.get(id)?.parent_session_id;
      if (!parent) return id;
      id = parent;
    }
    return id;
  }

  /** The runs of a session in the order in which they were accepted. */
  function runsOf(sessionId) {
    const found = [...store.runs.values()].filter((run) => run.session_id === sessionId);
    return found.sort((one, other) => Date.parse(one.created_at) - Date.parse(other.created_at));
  }

  /** The run that goes on, also one that is about to: nothing is ahead of an accepted one. */
  function activeRun(sessionId) {
    return runsOf(sessionId).find((run) => run.state !== "queued" && !isEnded(run));
  }

  /** What waits for its turn, also steering that the active run has not taken yet. */
  function queued(sessionId) {
    return runsOf(sessionId).filter((run) => run.state === "queued");
  }

  /** Whether somebody has to answer something before this session, or an agent of it, goes on. */
  function waiting(sessionId) {
    const belongs = (one) => one.session_id === sessionId || one.root_session_id === sessionId;
    return [...store.permissions.values(), ...store.questions.values()].some(belongs);
  }
}
