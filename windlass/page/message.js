// One message of a conversation: what a person said, or what the model answered, part by part.

import { h, fill } from "./dom.js";
import { bytes } from "./figures.js";
import { foldedText } from "./fold.js";
import { icon } from "./icons.js";
import { growingMarkdown } from "./markdown.js";
import { toolCallView } from "./tool_call.js";
import { prose } from "./visible.js";

const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;
const PICTURE_ADDRESS = /^data:image\/(?:png|jpeg|gif|webp);base64,/;
const SPEAKERS = { user: "You", assistant: "Agent", system: "System", tool: "Tool" };
const ENDINGS = {
  canceled: "Cancelled.",
  error: "This answer broke off.",
  max_tokens: "The answer was cut: it reached the model's limit of length.",
  content_filter: "The provider's content filter stopped the answer.",
};

/** A message's view: `update(message)` draws what changed. Views of its tool calls are told to `context.toolCalls`. */
export function messageView(context, first) {
  const content = h("div.content");
  const label = first.is_summary_message ? "Summary of what was before" : (SPEAKERS[first.role] ?? first.role);
  const element = h(
    `article.message.${first.role}`,
    { id: `m-${first.id}`, "aria-label": label, dataset: { testid: "message", role: first.role } },
    first.is_summary_message ? h("p.summary-note", null, "Summary: the model goes on from here") : null,
    content,
  );
  let parts = []; // {type, view}
  update(first);
  return { element, update };

  function update(message) {
    const isOver = message.role !== "assistant" || message.parts.some((part) => part.type === "finish");
    message.parts.forEach((part, index) => {
      if (parts[index]?.type !== part.type) replacePart(index, part, message);
      parts[index].view.update(part.data, isOver, index === message.parts.length - 1);
    });
    for (const { view } of parts.splice(message.parts.length)) view.element.remove(); // a retry began from nothing
    element.hidden = !parts.some(({ view }) => !view.isEmpty?.());
    element.toggleAttribute("data-open", !isOver);
  }

  function replacePart(index, part, message) {
    const view = partView(context, part, message);
    const old = parts[index];
    if (old) old.view.element.replaceWith(view.element);
    else content.append(view.element);
    parts[index] = { type: part.type, view };
  }
}

function partView(context, part, message) {
  switch (part.type) {
    case "text":
      return message.role === "user" ? plainText() : answerText(context);
    case "reasoning":
      return thinking();
    case "tool_call":
      return toolCall(context, part.data);
    case "binary":
      return attachment();
    case "image_url":
      return imageAddress();
    case "shell_command":
      return shellCommand();
    case "finish":
      return ending();
    default:
      return nothing(); // a kind that a newer server knows
  }
}

function plainText() {
  const element = h("p.plain");
  return { element, update: (data) => (element.textContent = prose(data.text)), isEmpty: () => !element.textContent };
}

function answerText(context) {
  const view = growingMarkdown(context.app);
  let isEmpty = true;
  return {
    element: view.element,
    update(data, isOver) {
      isEmpty = !data.text;
      if (!isEmpty) view.update(data.text, isOver);
    },
    isEmpty: () => isEmpty,
  };
}

function thinking() {
  const summary = h("summary", null, "Thinking");
  const text = document.createTextNode("");
  const body = h("p.plain", null, text);
  const element = h("details.thinking", { dataset: { testid: "thinking" } }, summary, body);
  let wasTouched = false; // by a person: then it stays as they left it
  let shown = "";
  summary.addEventListener("click", () => (wasTouched = true));
  return { element, update, isEmpty: () => !shown };

  function update(data, isOver, isLast) {
    const isGoingOn = !isOver && isLast && !data.finished_at;
    if (data.thinking.startsWith(shown)) text.appendData(prose(data.thinking.slice(shown.length)));
    else text.data = prose(data.thinking);
    shown = data.thinking;
    element.hidden = !shown;
    summary.textContent = isGoingOn ? "Thinking…" : `Thought: ${firstLine(shown)}`;
    if (!wasTouched) element.open = isGoingOn;
  }
}

function toolCall(context, call) {
  const view = toolCallView(context, call);
  context.toolCalls(call.id, view);
  return { element: view.element, update: (data, isOver) => view.update(data, isOver) };
}

function attachment() {
  const element = h("figure.attachment");
  let shown = null;
  return {
    element,
    update(data) {
      if (data === shown) return; // a picture that is drawn again flickers
      shown = data;
      const name = prose(data.Path || "attachment");
      const size = bytes(Math.floor((data.Data.replace(/=+$/, "").length * 3) / 4));
      const picture = PICTURES.test(data.MIMEType)
        ? h("img.picture", { src: `data:${data.MIMEType};base64,${data.Data}`, alt: name })
        : null;
      fill(element, picture, h("figcaption", null, picture ? name : [icon("attach", 14), ` ${name} (${size})`]));
    },
  };
}

function imageAddress() {
  const element = h("p");
  // Nothing is loaded from elsewhere: that would tell a stranger who reads this, and when.
  const update = ({ url }) => {
    const isHere = PICTURE_ADDRESS.test(url);
    fill(element, isHere ? h("img.picture", { src: url, alt: "Picture" }) : prose(url.slice(0, 500)));
  };
  return { element, update };
}

function shellCommand() {
  const element = h("div.own-command"); // "shell" is the frame of the whole page, and as high as it
  const update = (data) =>
    fill(
      element,
      foldedText(prose(`$ ${data.command}`), { label: "Command" }),
      data.output ? foldedText(prose(data.output)) : null,
      data.exit_code ? h("p.failed", null, `Exit code ${data.exit_code}`) : null,
    );
  return { element, update };
}

function ending() {
  const element = h("p.ending");
  return {
    element,
    update(data) {
      const said = ENDINGS[data.reason] ?? "";
      element.hidden = !said;
      element.dataset.reason = data.reason;
      fill(element, said, data.message ? ` ${prose(data.message)}` : "");
    },
    isEmpty: () => element.hidden,
  };
}

function nothing() {
  return { element: h("span", { hidden: true }), update() {}, isEmpty: () => true };
}

function firstLine(text) {
  const line = prose(text.slice(0, 2_000)).trimStart().split("\n", 1)[0];
  return line.length > 100 ? `${line.slice(0, 100)}…` : line;
}
