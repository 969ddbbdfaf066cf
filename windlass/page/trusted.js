// The page's one Trusted Types policy. The content-security policy allows a single policy with this name, made once, so
// it is made here and handed to the two places that need it: markdown.js (HTML that the server made and sanitised) and
// link.js (the address of the shared worker).

/** Where the shared worker lives; the only script address this page ever makes. */
export const WORKER_ADDRESS = "/page/shared_worker.js";

function onlyTheWorker(address) {
  if (address !== WORKER_ADDRESS) throw new TypeError("No other script is ever loaded by this page.");
  return address;
}

const rules = { createHTML: (html) => html, createScriptURL: onlyTheWorker };
const policy = globalThis.trustedTypes?.createPolicy("windlass", rules) ?? rules;

/** HTML from POST /v1/markdown, and nothing else, as what `innerHTML` takes. */
export function trustedHtml(html) {
  return policy.createHTML(html);
}

/** The shared worker's address, as what `new SharedWorker` takes. */
export function trustedWorkerAddress() {
  return policy.createScriptURL(WORKER_ADDRESS);
}
