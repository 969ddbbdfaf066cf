// The agent's list of what is to be done, as a checklist that says its states in words too.

import { h } from "./dom.js";
import { prose } from "./visible.js";

const SIGNS = { completed: "✓", in_progress: "▸", pending: "○" };
const WORDS = { completed: "done", in_progress: "being done", pending: "to do" };

/** The list. What is being done is said in its active form. */
export function todoList(todos) {
  const known = todos.filter((todo) => todo !== null && typeof todo === "object");
  return h("ul.todos", null, known.map(item));
}

/** `2 of 5 done`, and what is being done now. */
export function todoSummary(todos) {
  const done = todos.filter((todo) => todo.status === "completed").length;
  const now = todos.find((todo) => todo.status === "in_progress");
  return `${done} of ${todos.length} done${now ? ` · ${prose(now.active_form || now.content)}` : ""}`;
}

function item(todo) {
  const status = Object.hasOwn(SIGNS, todo.status ?? "") ? todo.status : "pending"; // a model writes what it likes
  const text = todo.status === "in_progress" && todo.active_form ? todo.active_form : todo.content;
  return h(
    "li",
    { dataset: { status } },
    h("span.sign", { "aria-hidden": "true" }, SIGNS[status]),
    h("span.unseen", null, `${WORDS[status]}: `),
    h("span", null, prose(String(text ?? ""))),
  );
}
