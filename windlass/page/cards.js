// Cards for what waits for a person. They appear on every page that is open, and go when anyone has answered, leaving a
// line that says who it was.

import { h, fill } from "./dom.js";
import { plural } from "./figures.js";
import { permissionCard } from "./permission_card.js";
import { questionCard } from "./question_card.js";
import { exactLine, prose } from "./visible.js";

const HELD_MILLISECONDS = 400; // a card that moves under a finger must not take a tap that was meant for something else
const REMEMBERED_BATCHES = 100; // questions that were asked here, so that a line about the answer finds its place
const LATE = "Someone else was first: it had been answered already.";
const OUTCOMES = {
  granted: "Allowed by",
  denied: "Denied by",
  answered: "Answered by",
  canceled: "Declined by",
};
const NOBODY = {
  withdrawn: "Withdrawn: the run went on or ended before anyone answered.",
  expired: "Expired: nobody answered in time.",
};
const batches = new Map(); // id -> batch

/** A keeper of cards. `belongs(request)`: it is this keeper's; `slotFor(request)`: where its card goes (null: nowhere);
 *  `lines`: whether answers leave a line. Call `update()` whenever what is pending, or a slot, may have changed. */
export function cardKeeper(app, { belongs, slotFor, origin, announce, lines = true }) {
  const cards = new Map(); // id -> {element, request}
  const said = new Map(); // id of what was answered -> its line

  return { update, clear, get size() { return cards.size; } };

  function update() {
    const pending = [...app.store.permissions.values(), ...app.store.questions.values()].filter(belongs);
    const ids = new Set(pending.map((request) => request.id));
    const gone = [...cards].filter(([id]) => !ids.has(id));
    for (const [id, { element }] of gone) take(id, element);
    if (gone.length) for (const { element } of cards.values()) hold(element); // they move up to where it was
    for (const request of pending) put(request);
    if (lines) for (const [id, how] of app.store.answered) leaveLine(id, how);
  }

  function put(request) {
    let card = cards.get(request.id);
    if (!card) {
      card = { element: makeCard(app, request, origin?.(request)), request };
      cards.set(request.id, card);
      announce?.(spoken(request));
    }
    const slot = slotFor(request);
    if (!slot || card.element.parentNode === slot) return;
    slot.append(card.element);
    hold(card.element);
  }

  function take(id, element) {
    const hadFocus = element.contains(document.activeElement);
    const slot = element.parentNode;
    element.remove();
    cards.delete(id);
    // The keyboard was on the card: without this it would start over at the top of the page.
    if (hadFocus) slot?.closest("[tabindex]")?.focus({ preventScroll: true });
  }

  function leaveLine(id, how) {
    const request = how.tool_call_id ? how : batches.get(id);
    if (!request || !belongs({ ...request, session_id: how.session_id || request.session_id })) return;
    const slot = slotFor(request, true);
    if (!slot) return;
    let line = said.get(id);
    if (!line) {
      line = h("p.answered", { dataset: { testid: "answered" } }, outcomeText(app, how));
      said.set(id, line);
      announce?.(line.textContent);
    }
    if (line.parentNode !== slot) slot.append(line);
    if (said.size > app.store.answered.size + REMEMBERED_BATCHES) said.delete(said.keys().next().value);
  }

  function clear() {
    for (const { element } of cards.values()) element.remove();
    for (const line of said.values()) line.remove();
    cards.clear();
    said.clear();
  }
}

/** The strip of cards that belong to other sessions than the one that is shown. */
export function cardsView(app) {
  const summary = h("summary");
  const list = h("div.list");
  const strip = h("details.elsewhere", null, summary, list);
  const status = h("p.unseen", { role: "status" });
  const element = h("div.cards", { hidden: true }, strip, status);
  const keeper = cardKeeper(app, {
    belongs: (request) => !isBelow(app.store, app.route.session, request),
    slotFor: () => list,
    origin: (request) => sessionLink(app, request),
    announce: (text) => (status.textContent = text),
    lines: false,
  });
  let wasTouched = false; // a person opened or closed it: then it stays so, until there is nothing in it
  summary.addEventListener("click", () => (wasTouched = true));
  return { element, update };

  function update() {
    keeper.update();
    element.hidden = keeper.size === 0;
    if (keeper.size === 0) wasTouched = false;
    // Closed where it would be in the way: on a phone, and above a session that asks something itself.
    if (!wasTouched) strip.open = matchMedia("(min-width: 761px)").matches && !app.store.waiting(app.route.session);
    const wait = keeper.size === 1 ? "waits" : "wait";
    fill(summary, `${plural(keeper.size, "request")} in other sessions ${wait} for you`);
  }
}

/** Whether what is asked comes from this session or from an agent below it. */
export function isBelow(store, sessionId, request) {
  if (!sessionId) return false;
  if (request.root_session_id === sessionId) return true;
  let id = request.session_id;
  for (let depth = 0; id && depth < 10; depth += 1) {
    if (id === sessionId) return true;
    id = store.sessions.get(id)?.parent_session_id;
  }
  return false;
}

/** A line that names the session a card comes from, and leads there. */
export function sessionLink(app, request) {
  const session = app.store.sessions.get(request.session_id);
  const title = prose(session?.title || "a session without a title");
  const name = session?.role ? `agent ${prose(session.role)}: ${title}` : title;
  const href = `#/w/${app.store.workspace?.id ?? ""}/s/${request.session_id}`;
  return h("p.origin", null, "In ", h("a", { href }, name));
}

/** Let no tap through for a moment; the keyboard, which goes where the focus is, still works. */
function hold(element) {
  const number = String(Number(element.dataset.held ?? 0) + 1);
  element.dataset.held = number;
  element.classList.add("held");
  const release = () => element.dataset.held === number && element.classList.remove("held");
  setTimeout(release, HELD_MILLISECONDS);
}

function makeCard(app, request, origin) {
  const grant = (action, pattern) => first(app, app.api.grant(request.id, action, pattern));
  if (!request.questions) return permissionCard(request, grant, origin);
  batches.set(request.id, request);
  if (batches.size > REMEMBERED_BATCHES) batches.delete(batches.keys().next().value);
  return questionCard(
    request,
    (responses) => first(app, app.api.answer(request.id, responses)),
    () => first(app, app.api.declineQuestions(request.id)),
    origin,
  );
}

async function first(app, answer) {
  const { resolved } = await answer;
  if (!resolved) app.notify(LATE);
}

function spoken(request) {
  if (request.questions) return `The agent asks: ${prose(request.questions[0]?.question ?? "")}`;
  return `Permission asked: ${exactLine(request.tool_name)}, ${exactLine(request.description)}`;
}

function outcomeText(app, how) {
  if (NOBODY[how.outcome]) return NOBODY[how.outcome];
  const scope = how.pattern ? `, for the session and for what fits ${exactLine(how.pattern)}` : "";
  return `${OUTCOMES[how.outcome] ?? `${how.outcome} by`} ${who(app, how.by)}${scope}`;
}

function who(app, by) {
  if (!by) return "someone";
  if (by.client_id && by.client_id === app.clientId) return "you";
  return prose(by.client_id ? `${by.name} (${by.client_id.slice(0, 8)})` : by.name);
}
