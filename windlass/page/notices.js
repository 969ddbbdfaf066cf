// How a person is told: toasts in the page, the tab's title, and the browser's notifications when nobody looks.

import { h } from "./dom.js";
import { recall, remember } from "./identity.js";
import { routeTo } from "./routes.js";
import { line, prose } from "./visible.js";

const TOASTS = 4; // at once; the oldest goes
const TOAST_MILLISECONDS = 6_000;
const ERROR_MILLISECONDS = 15_000; // it has to be read, and maybe acted on
const BELL = "windlass.bell"; // whether this browser wants notifications
const TEXT_CHARACTERS = 160; // of a notification; systems cut what is longer

/** The notices of this tab. `element` holds the toasts. */
export function createNotices(app) {
  const element = h("div.toasts", { role: "status", "aria-live": "polite", "aria-label": "Notices" });
  let isUnseen = false; // something ended while nobody looked
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") isUnseen = false;
    show();
  });
  return { element, toast, announce, update, show, wantsBell, ring, canRing };

  /** Say something in a corner of the page for some seconds. */
  function toast(text, kind = "info") {
    const close = h("button.quiet", { type: "button", "aria-label": "Dismiss", onclick: () => note.remove() }, "×");
    const note = h(`div.toast.${kind}`, { dataset: { testid: "toast" } }, h("span", null, prose(text)), close);
    element.append(note);
    while (element.children.length > TOASTS) element.firstChild.remove();
    setTimeout(() => note.remove(), kind === "error" ? ERROR_MILLISECONDS : TOAST_MILLISECONDS);
  }

  // -- the title -----------------------------------------------------------------------------------------------------

  function update(changes) {
    if (changes.sessions || changes.permissions || changes.questions || changes.reset) show();
  }

  /** `(2) …` when two things wait for an answer, `● …` when a run ended while nobody looked. */
  function show() {
    const { store, route } = app;
    const waiting = store.permissions.size + store.questions.size;
    const mark = waiting ? `(${waiting}) ` : isUnseen ? "● " : "";
    const place = line(store.sessions.get(route.session)?.title || directoryName(store.workspace?.path ?? ""));
    document.title = `${mark}${place ? `${place} · ` : ""}Windlass`;
  }

  // -- the browser's notifications -----------------------------------------------------------------------------------

  /** The hub chose this tab to tell: nobody looks at any of them. */
  function announce({ kind, payload }) {
    const session = app.store.sessions.get(app.store.rootOf(payload.root_session_id || payload.session_id));
    // Who cancelled a run knows, and what an agent's run came to is its parent's business.
    if (kind === "run_complete" && (payload.cancelled || session?.id !== payload.session_id)) return;
    isUnseen = true;
    show();
    if (!wantsBell() || !canRing() || Notification.permission !== "granted") return;
    const title = line(session?.title ?? "") || "Windlass";
    try {
      // The tag: a second one about the same session replaces the first instead of piling up.
      const tag = `windlass ${session?.id}`;
      const note = new Notification(title, { body: describe(kind, payload), tag, icon: "/page/icon.svg" });
      note.onclick = () => {
        focus();
        if (session) location.hash = routeTo({ workspace: app.store.workspace.id, session: session.id });
        note.close();
      };
    } catch {
      // Phones allow them to service workers only; the title has it.
    }
  }

  function canRing() {
    return typeof Notification !== "undefined" && isSecureContext;
  }

  function wantsBell() {
    return recall(BELL) === "on" && canRing() && Notification.permission === "granted";
  }

  /** Switch notifications on or off. Asks the browser, so it must come from a click. */
  async function ring(on) {
    if (!on) return remember(BELL, "");
    if (!canRing()) {
      return toast("This browser shows notifications only over HTTPS or on the server's own machine.", "error");
    }
    if ((await Notification.requestPermission()) !== "granted") {
      return toast("The browser does not allow notifications here. Its site settings can change that.", "error");
    }
    remember(BELL, "on");
    toast("You will be told when a run waits for you or ends while you look elsewhere.");
  }
}

function describe(kind, payload) {
  if (kind === "permission_request") return `Waits for you: ${shortened(payload.description || payload.tool_name)}`;
  if (kind === "question_batch_request") return `Asks: ${shortened(payload.questions[0]?.question ?? "a question")}`;
  if (payload.error) return `Failed: ${shortened(payload.error)}`;
  return `Done. ${shortened(payload.text ?? "")}`;
}

function shortened(text) {
  const words = line(text.slice(0, 10 * TEXT_CHARACTERS));
  return words.length > TEXT_CHARACTERS ? `${words.slice(0, TEXT_CHARACTERS - 1)}…` : words;
}

/** The last part of a path: what people call a directory. */
export function directoryName(path) {
  return path.split("/").filter(Boolean).at(-1) ?? "";
}
