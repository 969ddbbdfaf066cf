// Questions that an agent puts to people: answered together, or declined.

import { h } from "./dom.js";
import { prose } from "./visible.js";

/** The card. `answer(responses)` and `decline()` throw what the server says against it. */
export function questionCard(batch, answer, decline, origin) {
  const problem = h("p.failed", { role: "alert" });
  const fields = batch.questions.map((question) => questionField(batch.id, question));
  const send = h("button.primary", { type: "submit", dataset: { testid: "answer-send" } }, "Answer");
  const declines = { type: "button", dataset: { testid: "decline" }, onclick: () => attempt(decline) };
  const buttons = h("div.buttons", null, send, h("button", declines, "Decline"));
  const form = h("form", { onsubmit }, fields.map((field) => field.element), buttons, problem);
  const card = h(
    "section.card.question",
    { tabindex: "0", "aria-label": "The agent asks you", dataset: { testid: "question-card", id: batch.id } },
    origin,
    h("h2", null, h("span.sign", { "aria-hidden": "true" }, "?"), "The agent asks you"),
    form,
  );
  return card;

  function onsubmit(event) {
    event.preventDefault();
    const missing = fields.find((field) => field.read() === null);
    if (missing) {
      problem.textContent = "Answer every question, or decline.";
      missing.focus();
      return;
    }
    attempt(() => answer(fields.map((field) => field.read())));
  }

  async function attempt(action) {
    if (card.dataset.sent) return; // a second click
    card.dataset.sent = "yes";
    problem.textContent = "";
    lock(true);
    try {
      await action();
    } catch (error) {
      delete card.dataset.sent;
      lock(false);
      problem.textContent = `The answer was not taken. ${error.message}`;
    }
  }

  function lock(yes) {
    for (const control of form.elements) control.disabled = yes;
  }
}

/** A question's controls. `read()` is the response, null when there is none yet. */
function questionField(batchId, question) {
  const name = `${batchId}-${question.id}`;
  const explained = question.description ? h("p.soft", null, prose(question.description)) : null;
  const { controls, value } = CONTROLS[question.type]?.(name, question) ?? freeText(name, question);
  const element = h("fieldset", null, h("legend", null, prose(question.question)), explained, controls);
  return {
    element,
    focus: () => element.querySelector("input, textarea")?.focus(),
    read: () => {
      const said = value();
      return said === null ? null : { request_id: question.id, ...said };
    },
  };
}

const CONTROLS = {
  yes_no: yesNo,
  single_choice: choices("radio"),
  multi_choice: choices("checkbox"),
  free_text: freeText,
};

function yesNo(name) {
  const yes = h("input", { type: "radio", name, value: "yes" });
  const no = h("input", { type: "radio", name, value: "no" });
  const value = () => (yes.checked || no.checked ? { yes: yes.checked } : null);
  return { controls: h("div.choices", null, h("label", null, yes, "Yes"), h("label", null, no, "No")), value };
}

function choices(type) {
  return (name, question) => {
    const box = (choice) => ({ choice, input: h("input", { type, name, value: choice.id }) });
    const boxes = (question.choices ?? []).map(box);
    const own = h("input", { type: "text", autocomplete: "off" });
    // A radio button cannot be taken back by hand; words of one's own are another answer, so they take it back.
    const takeBack = () => own.value && boxes.forEach(({ input }) => (input.checked = false));
    if (type === "radio") own.addEventListener("input", takeBack);
    if (type === "radio") boxes.forEach(({ input }) => input.addEventListener("change", () => (own.value = "")));
    const labels = boxes.map(({ choice, input }) => h("label", null, input, choiceText(choice)));
    const controls = h("div.choices", null, labels, h("label.own", null, h("span", null, "Or in your own words"), own));
    const value = () => {
      const selected = boxes.filter(({ input }) => input.checked).map(({ choice }) => choice.id);
      const words = own.value.trim();
      return selected.length || words ? { selected_ids: selected, ...(words && { fill_in_text: words }) } : null;
    };
    return { controls, value };
  };
}

function choiceText({ label, description }) {
  return h("span", null, prose(label), description ? h("span.soft", null, prose(description)) : null);
}

function freeText(name, question) {
  const box = h("textarea", { rows: "3", name, "aria-label": prose(question.question) });
  return { controls: box, value: () => (box.value.trim() ? { fill_in_text: box.value.trim() } : null) };
}
