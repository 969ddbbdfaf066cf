// What waits for its turn in the shown session, above the prompt box, each with a button that takes it out.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { keyedList } from "./keyed.js";
import { prose } from "./visible.js";

const SHOWN_CHARACTERS = 300; // of a prompt that waits; two lines

/** The list of waiting prompts. `show(sessionId)` after each change of runs. */
export function queueView(app) {
  const element = h("ol.prompt-queue", { "aria-label": "Prompts that wait", hidden: true });
  const render = keyedList(element, (run) => run.id, row);
  return { element, show };

  function show(sessionId) {
    // One that was taken out ends in its turn, after what is before it; here it is gone at once.
    const waiting = (sessionId ? app.store.queued(sessionId) : []).filter((run) => !run.cancel_requested);
    render(waiting);
    element.hidden = waiting.length === 0;
  }

  function row(run) {
    const words = h("span.queue-state");
    const text = h("span.queue-text");
    const remove = h(
      "button.quiet.icon",
      { type: "button", "aria-label": "Take it out of the queue", title: "Take it out of the queue",
        dataset: { testid: "queue-remove" }, onclick: () => takeOut(run.id, remove) },
      icon("close", 16),
    );
    const item = h("li.queue-item", { dataset: { testid: "queue-item" } }, words, text, remove);
    return { element: item, update };

    function update({ disposition, prompt }) {
      words.textContent = disposition === "steered" ? "steers at the next step" : "queued";
      text.textContent = prose(prompt.slice(0, SHOWN_CHARACTERS));
    }
  }

  async function takeOut(runId, button) {
    button.disabled = true; // a second click would be told that it is gone
    try {
      await app.api.removeQueued(runId);
    } catch (error) {
      button.disabled = false;
      app.notify(error.message, "error");
    }
  }
}
