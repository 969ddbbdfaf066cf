// Text that was typed and not sent, per session, so that it is there again after a look elsewhere or a reload.

const PREFIX = "windlass.draft.";

/** The draft of a session ("" for the session that does not exist yet); "" when there is none. */
export function draft(workspace, session) {
  try {
    return sessionStorage.getItem(`${PREFIX}${workspace}.${session}`) ?? "";
  } catch {
    return "";
  }
}

/** Keep a draft; "" forgets it. */
export function keepDraft(workspace, session, text) {
  try {
    const key = `${PREFIX}${workspace}.${session}`;
    if (text) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
  } catch {
    // No storage, or it is full: the text is still in the box.
  }
}
