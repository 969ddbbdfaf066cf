// What a tool was called with: the one argument that tells what it is about, and the rest for those who look closer.
// Pure: no elements here.

const ESSENTIAL = ["file_path", "command", "path", "pattern", "url", "query", "id", "prompt", "name"];
const PEEKED_CHARACTERS = 4_000; // of an input that is still being written
const ARGUMENT = /"(?:file_path|command|path|pattern|url|prompt)"\s*:\s*"((?:[^"\\]|\\.)*)/;
const CHANGES_FILES = new Set(["edit", "multiedit", "write"]);

/** Whether the tool changes files, so that its diff is what people want to see. */
export function changesFiles(name) {
  return CHANGES_FILES.has(name);
}

/** The arguments as an object; null while they are being written, and when the model wrote no JSON. */
export function argumentsOf(input) {
  try {
    const value = JSON.parse(input || "{}");
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** JSON that a tool gave along with its result; null for none. */
export function metadataOf(result) {
  try {
    return result?.metadata ? JSON.parse(result.metadata) : null;
  } catch {
    return null;
  }
}

/** What the call is about, in a few words on one line. `input` may be unfinished. */
export function essential(name, input) {
  const given = argumentsOf(input);
  return oneLine(given ? told(name, given) : peeked(input));
}

function told(name, given) {
  if (name === "todos" && Array.isArray(given.todos)) {
    const done = given.todos.filter((todo) => todo?.status === "completed").length;
    return `${done} of ${given.todos.length} done`;
  }
  if (name === "question") return given.questions?.[0]?.question ?? "";
  if (name === "agent") return joined(" · ", given.action, given.role, given.prompt ?? given.text ?? given.id);
  if (name === "grep" || name === "glob") return joined(" in ", given.pattern, given.path);
  if (name === "ls") return given.path || ".";
  const key = ESSENTIAL.find((one) => typeof given[one] === "string" && given[one]);
  return key ? given[key] : Object.values(given).find((value) => typeof value === "string") ?? "";
}

function joined(between, ...texts) {
  return texts.filter(Boolean).join(between);
}

function peeked(input) {
  const found = ARGUMENT.exec(input.slice(0, PEEKED_CHARACTERS));
  if (!found) return "";
  return found[1].replace(/\\(["\\/nt])/g, (_, character) => ({ n: " ", t: " " })[character] ?? character);
}

function oneLine(text) {
  return String(text).slice(0, 500).replace(/\s+/g, " ").trim();
}
