// The prompt box: what is typed, what goes along with it, what waits, and how to stop what runs.
//
// Typed text is never lost: it leaves the box when the server has it on disk, and not before.

import { attachmentsView, forPrompt } from "./attachments.js";
import { h } from "./dom.js";
import { draft, keepDraft } from "./drafts.js";
import { icon } from "./icons.js";
import { uuid } from "./identity.js";
import { queueView } from "./queue.js";

const PROMPT_CHARACTERS = 1_000_000; // the server takes no more
const CHOICES = [
  ["enqueue", "Queue", "Runs when what runs now is done"],
  ["steer", "Steer", "The run reads it at its next step"],
  ["interrupt", "Interrupt", "Stops what runs, then runs this"],
];

/** The composer. `show(sessionId)`: "" is the session that begins with the first prompt. */
export function composerView(app) {
  const { api, store } = app;
  let sessionId = "";
  let onBusy = "enqueue";
  let sending = null; // the promise of what is being sent, until it is answered
  let isWantedAgain = false; // Enter was pressed meanwhile, for what was typed since
  let last = null; // {key, runId} of a prompt whose answer did not come: sent again it is the same run
  const fresh = new Map(); // workspace -> a session that was made for a prompt that then failed
  const kept = new Map(); // session -> attachments, while another session is shown

  const box = h("textarea", {
    id: "prompt", rows: "1", maxlength: String(PROMPT_CHARACTERS), "aria-label": "Prompt", enterkeyhint: "send",
    dataset: { testid: "prompt" }, oninput: typed, onkeydown: onKey,
  });
  const attachments = attachmentsView(app, showState);
  const queue = queueView(app);
  const choice = choiceView();
  const send = h(
    "button.primary.send", { type: "submit", "aria-label": "Send", dataset: { testid: "send" } },
    icon("send"), h("span.button-words", null, "Send"),
  );
  const cancel = h(
    "button.cancel",
    { type: "button", "aria-label": "Stop",
      title: "Stop (Ctrl+. or Esc Esc)", onclick: stop, dataset: { testid: "cancel" } },
    icon("stop", 16), h("span.button-words", null, "Stop"),
  );
  const hint = h("span.hint");
  const element = h(
    "form.composer", { "aria-label": "Prompt", dataset: { testid: "composer" }, onsubmit: submit },
    h("div.composer-column", null, queue.element,
      h("div.box", null, attachments.element, box,
        h("div.box-row", null, attachments.button, attachments.picker, choice.element, hint, cancel, send))),
  );
  attachments.wire(box, document.body);
  return { element, show, update, focus: () => box.focus(), stop, insert };

  // -- what is shown -------------------------------------------------------------------------------------------------

  function show(wanted) {
    const key = `${store.workspace?.id ?? ""}/${wanted}`;
    if (element.dataset.place !== key) {
      const attached = attachments.all();
      if (element.dataset.place && attached.length) kept.set(element.dataset.place, attached);
      else kept.delete(element.dataset.place);
      element.dataset.place = key;
      sessionId = wanted;
      isWantedAgain = false; // it was meant for what was typed elsewhere
      const typedBefore = draft(store.workspace?.id ?? "", sessionId);
      if (box.value !== typedBefore) box.value = typedBefore; // the caret stays where it is
      attachments.replace(kept.get(key) ?? []);
      grow();
    }
    showState();
  }

  function update(changes) {
    if (changes.runs || changes.sessions || changes.reset || changes.connection) showState();
  }

  function showState() {
    const isBusy = Boolean(sessionId && (store.activeRun(sessionId) || store.sessions.get(sessionId)?.is_busy));
    queue.show(sessionId);
    cancel.hidden = !isBusy;
    choice.element.hidden = !isBusy;
    send.disabled = sending !== null || box.value.trim() === "";
    hint.textContent = modelName(store.workspace);
    hint.hidden = isBusy;
    box.placeholder = placeholder(isBusy);
  }

  function placeholder(isBusy) {
    if (!sessionId) return app.planNext ? "Plan: it may read, and change nothing" : "What shall be done?";
    if (!isBusy) return store.sessions.get(sessionId)?.plan ? "Plan: it may read, and change nothing" : "Ask or tell";
    if (onBusy === "enqueue") return "Say what comes next";
    return onBusy === "steer" ? "Say what it should know now" : "Say what to do instead";
  }

  function grow() {
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`; // its largest height is the stylesheet's business
  }

  function choiceView() {
    const radios = CHOICES.map(([value, label, title]) => {
      const radio = h("input", { type: "radio", name: "on-busy", value, onchange: () => choose(value) });
      radio.checked = value === onBusy;
      return { value, radio, element: h("label", { title }, radio, h("span", null, label)) };
    });
    const legend = h("legend.unseen", null, "While a run is going on, Enter does this");
    const field = h("fieldset.choice", null, legend, radios.map((one) => one.element));
    return { element: field, choose };

    function choose(value) {
      onBusy = value;
      radios.forEach((one) => (one.radio.checked = one.value === value));
      showState();
    }
  }

  // -- typing --------------------------------------------------------------------------------------------------------

  function typed() {
    keepDraft(store.workspace?.id ?? "", sessionId, box.value);
    grow();
    showState();
  }

  function onKey(event) {
    // While a word is being composed (Chinese, Japanese, Korean) Enter belongs to the keyboard.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    element.requestSubmit();
  }

  /** Put a text into the box, as if it had been typed. */
  function insert(text) {
    box.value = text;
    typed();
    box.focus();
  }

  // -- sending -------------------------------------------------------------------------------------------------------

  async function submit(event) {
    event?.preventDefault();
    if (sending) return void (isWantedAgain = true); // in the order of Enter, one after the other
    const text = box.value;
    if (text.trim() === "" || !store.workspace) return;
    sending = deliver({ workspace: store.workspace.id, session: sessionId }, text, attachments.all());
    showState();
    const session = await sending;
    sending = null;
    showState();
    if (isWantedAgain && session) submit(); // what failed is still in the box, and is not sent again unasked
    isWantedAgain = false;
  }

  /** Send a text from a place. Answers the session that has it, "" when it was not taken. */
  async function deliver(place, text, attached) {
    try {
      const session = place.session || (await freshSession(place.workspace));
      if (text.startsWith("!") && text.slice(1).trim()) runCommand(session, text);
      else await prompt(session, text, attached);
      fresh.delete(place.workspace);
      sent(place, text, attached);
      if (!place.session && app.route.workspace === place.workspace && !app.route.session) begin(place, session);
      return session;
    } catch (error) {
      app.notify(`Not sent: ${error.message} Your text is still in the box.`, "error");
      return "";
    }
  }

  async function freshSession(workspace) {
    if (!fresh.has(workspace)) fresh.set(workspace, (await api.createSession("")).id);
    if (app.planNext) await api.setPlan(fresh.get(workspace), true); // before the prompt: its run must change nothing
    return fresh.get(workspace);
  }

  /** The session that began with this prompt is shown; what was typed since is typed there. */
  function begin(place, session) {
    app.planNext = false;
    keepDraft(place.workspace, session, box.value);
    keepDraft(place.workspace, "", "");
    if (attachments.all().length) kept.set(`${place.workspace}/${session}`, attachments.all());
    attachments.replace([]);
    app.go({ workspace: place.workspace, session });
    const wanted = isWantedAgain;
    show(session); // at once: the address is followed later, and Enter may come before
    isWantedAgain = wanted;
  }

  async function prompt(session, text, attached) {
    const body = { session_id: session, prompt: text, on_busy: onBusy, attachments: attached.map(forPrompt) };
    const key = JSON.stringify(body);
    if (last?.key !== key) last = { key, runId: uuid() };
    try {
      await api.prompt({ ...body, run_id: last.runId });
    } catch (error) {
      // It was refused, so it is not a run. Silence, and a server in trouble, leave that open.
      if (error.status >= 400 && error.status < 500) last = null;
      throw error;
    }
    last = null;
  }

  /** `! command`: one's own command, in the conversation. It answers when it has ended, so nobody waits for that. */
  function runCommand(session, text) {
    api.shell(session, text.slice(1).trim()).catch((error) => {
      const wasStopped = error.status === 409; // somebody did that on purpose
      app.notify(error.message, wasStopped ? "info" : "error");
      if (!wasStopped && sessionId === session && box.value === "") insert(text);
    });
  }

  function sent(place, text, attached) {
    keepDraft(place.workspace, place.session, "");
    kept.delete(`${place.workspace}/${place.session}`);
    if (sessionId !== place.session) return;
    if (box.value === text) box.value = ""; // somebody may have typed on meanwhile
    attachments.replace(attachments.all().filter((one) => !attached.includes(one)));
    if (onBusy === "interrupt") choice.choose("enqueue"); // once; the next Enter must not stop something by surprise
    typed();
  }

  /** Cancel what runs and what waits in the shown session. */
  async function stop() {
    isWantedAgain = false;
    const shown = sessionId;
    if (!shown && !sending) return;
    cancel.disabled = true;
    try {
      // A stop covers what was accepted: sent before the prompt is, it would stop nothing.
      const begun = await sending;
      if (shown || begun) await api.cancel(shown || begun);
    } catch (error) {
      app.notify(error.message, "error");
    } finally {
      cancel.disabled = false;
    }
  }
}

/** `provider/model` as the workspace is configured. */
export function modelName(workspace) {
  const large = workspace?.config?.models?.large;
  return large ? `${large.provider}/${large.model}` : "";
}
