// The conversation that is shown: its messages, what waits for an answer in it, its agents, and a run's timeline
// above it.

import { agentsTree, changesAgents } from "./agents.js";
import { cardKeeper, isBelow, sessionLink } from "./cards.js";
import { h, fill } from "./dom.js";
import { retryMarkdown, whenPlaced } from "./markdown.js";
import { threadView } from "./thread.js";
import { timelineView } from "./timeline.js";
import { todoList, todoSummary } from "./todos.js";

const CLICK_MILLISECONDS = 300; // a finger's click comes some frames after its release, at what is there then
const NEAR_END_PIXELS = 48; // from the end at which a reader still counts as being there
const DOING = { waiting: "Waits for you", running: "Working" };
const ENDED = { completed: "completed", canceled: "was cancelled", failed: "failed", interrupted: "was interrupted" };

/** The view. `show(sessionId, runId)` for another session or run, `update(changes)` as the store tells them. */
export function conversationView(app) {
  const agents = agentsTree(app);
  const timeline = timelineView(app, goTo);
  const todos = h("details.todo-fold", { hidden: true });
  const head = h("div.conversation-head", null, agents.element, todos);
  const place = h("div.thread-place");
  const tail = h("div.slot.tail");
  const live = h("p.live-run", { hidden: true });
  const column = h("div.column", null, place, tail, live);
  const isRegion = { tabindex: "0", role: "region", "aria-label": "Conversation" };
  const scroller = h("div.conversation-scroll", isRegion, column);
  const jump = h("button.jump", { type: "button", hidden: true, onclick: toEnd, dataset: { testid: "new-messages" } });
  const status = h("p.unseen", { role: "status" });
  const isNamed = { dataset: { testid: "conversation" } };
  const element = h("div.conversation", isNamed, head, timeline.element, scroller, jump, status);
  const keeper = cardKeeper(app, { belongs, slotFor, origin, announce: (text) => (status.textContent = text) });

  let shownSession = "";
  let wantedMessage = ""; // to go to as soon as it is there
  let thread = null;
  let isAtEnd = true;
  let lastTop = 0; // where it was scrolled to when we last looked
  let isPressed = false; // a finger or a mouse's button is down on it, or its click has not come yet
  let released = 0; // the timer of a release whose click has not come yet
  let hasNews = false;
  let drawnMessages = 0;
  let hasFailed = false; // the session could not be loaded
  let lastRun = ""; // what the live line was about, to say it when it ends

  scroller.addEventListener("scroll", noteScroll, { passive: true });
  // Who opens a fold at the end wants to read it, and not to be carried away by what comes.
  scroller.addEventListener("click", (event) => event.target.closest("summary") && leaveEnd());
  // What moves between press and release is not clicked, and text that is being marked slips away.
  scroller.addEventListener("pointerdown", (event) => event.button === 0 && press(), { passive: true });
  addEventListener("pointerup", awaitClick, { capture: true, passive: true });
  addEventListener("click", () => released && letGo(), { capture: true, passive: true });
  // No click follows these, and after a context menu perhaps no release either.
  for (const kind of ["pointercancel", "contextmenu"]) addEventListener(kind, letGo, { capture: true, passive: true });
  addEventListener("blur", letGo); // of the window: the release may be somebody else's then
  whenPlaced(keepEnd);
  // Other late changes of height: pictures, the window itself.
  new ResizeObserver(keepEnd).observe(column);
  new ResizeObserver(keepEnd).observe(scroller);
  return { element, show, update, focusSearch: () => app.search() };

  // -- what is shown --------------------------------------------------------------------------------------------------

  function show(sessionId, runId = "") {
    timeline.show(sessionId && runId ? runId : "");
    const message = app.route.message ?? "";
    if (sessionId !== shownSession || (sessionId && !app.store.isLoaded(sessionId))) open(sessionId);
    if (message) {
      wantedMessage = message;
      goToWanted();
    }
  }

  async function open(sessionId) {
    keeper.clear();
    fill(tail);
    shownSession = sessionId;
    wantedMessage = "";
    lastRun = "";
    thread = null;
    fill(place);
    fill(live);
    hasNews = false;
    hasFailed = false;
    isAtEnd = true;
    if (!sessionId) return drawHead();
    const own = (thread = threadView(app, sessionId));
    fill(place, app.store.isLoaded(sessionId) ? thread.element : h("p.soft.loading", null, "Loading…"));
    if (app.store.isLoaded(sessionId)) drawAll();
    try {
      await app.store.load(sessionId);
      if (thread === own) drawAll();
    } catch (error) {
      const why = `This session cannot be shown. ${error.message}`;
      if (thread !== own) return;
      hasFailed = true;
      fill(place, h("p.failed", { role: "alert" }, why));
    }
  }

  function drawAll() {
    fill(place, thread.element);
    thread.update(null);
    settle(null);
    goToWanted();
  }

  function update(changes) {
    const isBack = changes.connection && app.store.connection.state === "live";
    if (isBack) retryMarkdown(app);
    if (isBack && hasFailed) return open(shownSession); // asked for while the server was away
    const wasDrawn = thread?.element.parentNode === place;
    if (wasDrawn && app.store.loaded && !app.store.sessions.has(shownSession)) return sayGone();
    if (!thread || !app.store.isLoaded(shownSession)) return drawHead();
    if (!wasDrawn) fill(place, thread.element);
    thread.update(changes);
    settle(changes);
    timeline.update(changes);
    goToWanted();
  }

  /** Somebody deleted the session while it was shown. */
  function sayGone() {
    keeper.clear();
    thread = null;
    live.hidden = true;
    fill(place, h("p.empty", { role: "alert" }, "This session was deleted."));
    drawHead();
  }

  /** Everything around the thread, after it was drawn. */
  function settle(changes) {
    // Cards and agents are looked at when something was said about them, or when messages came that they belong to: not
    // with every word that is streamed.
    const isAbout = !changes || changesAgents(changes);
    const isLonger = app.store.messages(shownSession).length !== drawnMessages;
    drawnMessages = app.store.messages(shownSession).length;
    if (isAbout || isLonger) keeper.update();
    if (isAbout || isLonger) thread.refreshCalls();
    if (isAbout) drawHead();
    if (isAbout) drawLive();
    if (isAbout || isLonger) drawEmpty();
    if (changes?.messages.has(shownSession)) hasNews = !isAtEnd;
    if (isAbout) showTallCard();
    keepEnd();
    drawJump();
  }

  // -- head and tail --------------------------------------------------------------------------------------------------

  function drawHead() {
    const session = app.store.sessions.get(shownSession);
    agents.update(shownSession);
    const list = session?.todos ?? [];
    todos.hidden = list.length === 0 || list.every((todo) => todo.status === "completed");
    const now = JSON.stringify(list);
    if (todos.dataset.drawn === now) return;
    todos.dataset.drawn = now;
    fill(todos, h("summary", null, todoSummary(list)), todoList(list));
  }

  function drawLive() {
    const run = app.store.activeRun(shownSession);
    live.hidden = !run;
    if (run) {
      const waits = app.store.waiting(shownSession) || run.state === "waiting";
      const text = run.cancel_requested ? "Stopping…" : `${DOING[waits ? "waiting" : "running"]}…`;
      live.dataset.state = waits ? "waiting" : "running";
      if (live.textContent !== text) live.textContent = text;
    } else if (lastRun) {
      status.textContent = `The run ${ENDED[app.store.runs.get(lastRun)?.state] ?? "ended"}.`;
    }
    lastRun = run?.id ?? "";
  }

  function drawEmpty() {
    const isEmpty = app.store.messages(shownSession).length === 0 && !app.store.activeRun(shownSession);
    let hint = place.querySelector(".empty");
    if (!isEmpty) return hint?.remove();
    if (!hint) place.append(h("p.empty", null, "Nothing was said here yet. Write below what you want done."));
  }

  // -- cards ----------------------------------------------------------------------------------------------------------

  function belongs(request) {
    return thread !== null && isBelow(app.store, shownSession, request);
  }

  /** At its tool call if that is on the page; at the end otherwise, so that a card is never without a place. The line
   *  that an answer to an agent leaves stands at that agent. */
  function slotFor(request, isAnswered = false) {
    const isOwn = request.session_id === shownSession;
    if (isAnswered) return (isOwn ? thread.slotOf(request.tool_call_id) : thread.agentOf(request.session_id)) ?? null;
    return (isOwn && thread.slotOf(request.tool_call_id)) || tail;
  }

  function origin(request) {
    return request.session_id === shownSession ? null : sessionLink(app, request);
  }

  // -- scrolling ------------------------------------------------------------------------------------------------------

  function noteScroll() {
    const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (left < NEAR_END_PIXELS) isAtEnd = true;
    // Only who went up has left the end: what grew below since we scrolled there is still to be followed.
    else if (scroller.scrollTop < lastTop) isAtEnd = false;
    lastTop = scroller.scrollTop;
    if (isAtEnd) hasNews = false;
    drawJump();
  }

  function scrollToEnd() {
    scroller.scrollTop = scroller.scrollHeight;
    lastTop = scroller.scrollTop;
  }

  function leaveEnd() {
    isAtEnd = false;
    requestAnimationFrame(noteScroll); // if it still is the end after the fold has opened, it is followed again
  }

  function press() {
    clearTimeout(released);
    released = 0;
    isPressed = true;
  }

  function awaitClick() {
    if (isPressed && !released) released = setTimeout(letGo, CLICK_MILLISECONDS);
  }

  function letGo() {
    if (!isPressed) return;
    clearTimeout(released);
    released = 0;
    isPressed = false;
    // Later: whoever hears of the same click must find everything where it was.
    requestAnimationFrame(() => {
      showTallCard();
      keepEnd();
    });
  }

  function keepEnd() {
    if (isPressed) return;
    if (isAtEnd && !wantedMessage) scrollToEnd();
    else drawJump();
  }

  /** A card that is longer than the page is read from its beginning. Once: after that people scroll by themselves. */
  function showTallCard() {
    const card = column.querySelector(".card:not([data-seen])");
    if (!card || isPressed) return;
    card.dataset.seen = "yes";
    if (!isAtEnd || card.offsetHeight < scroller.clientHeight) return;
    isAtEnd = false;
    card.scrollIntoView({ block: "start" });
  }

  function drawJump() {
    if (isPressed && jump.hidden) return; // it would come under the finger, and take the release
    jump.hidden = isAtEnd;
    const text = hasNews ? "↓ New messages" : "↓ To the end";
    if (jump.textContent !== text) jump.textContent = text;
  }

  function toEnd() {
    isAtEnd = true;
    hasNews = false;
    wantedMessage = "";
    thread?.latest();
    scrollToEnd();
    drawJump();
    scroller.focus({ preventScroll: true }); // the button is gone now
  }

  function goToWanted() {
    if (!wantedMessage || !thread || !app.store.isLoaded(shownSession)) return;
    const id = wantedMessage;
    wantedMessage = "";
    goTo(id);
  }

  /** Bring a message into view, and say by a mark that it is the one. */
  function goTo(messageId) {
    const found = thread?.reveal(messageId);
    if (!found) return;
    isAtEnd = false;
    const isTall = found.offsetHeight > scroller.clientHeight;
    found.scrollIntoView({ block: isTall ? "start" : "center" });
    found.classList.remove("found");
    found.classList.add("found");
    found.addEventListener("animationend", () => found.classList.remove("found"), { once: true });
  }
}
