// A session as a file: Markdown to read, JSON for programs. Made in the browser from what it has already.

/** Let the browser save a text under a name. */
export function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // a download that has begun holds its own copy by then
}

/** The session and its messages, exactly as the API gives them. */
export function asJson(session, messages) {
  return `${JSON.stringify({ session, messages }, null, 2)}\n`;
}

/** The conversation for people: who said what, with tool calls and their results as code. */
export function asMarkdown(session, messages) {
  const blocks = [`# ${oneLine(session.title) || "Untitled"}`];
  for (const message of messages) {
    const body = message.parts.map(partAsMarkdown).filter(Boolean).join("\n\n");
    if (!body) continue;
    if (message.role === "user") blocks.push("## You");
    else if (message.role === "assistant") blocks.push(`## ${oneLine(message.model) || "Assistant"}`);
    blocks.push(body);
  }
  return `${blocks.join("\n\n")}\n`;
}

/** A name for the file: the title without what file systems do not like. */
export function fileName(session, ending) {
  const words = session.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${words || session.id}.${ending}`;
}

function partAsMarkdown({ type, data }) {
  if (type === "text") return data.text;
  if (type === "reasoning") return data.thinking && quoted(data.thinking);
  if (type === "tool_call") return `**${oneLine(data.name)}**\n\n${fenced(data.input, "json")}`;
  if (type === "tool_result") return fenced(data.content, data.is_error ? "error" : "");
  if (type === "shell_command") return fenced(`$ ${data.command}\n${data.output}`);
  if (type === "binary") return `(attached: ${oneLine(data.Path)}, ${oneLine(data.MIMEType)})`;
  if (type === "finish" && data.message) return `_${oneLine(data.message)}_`;
  return "";
}

function quoted(text) {
  return text.split("\n").map((line) => `> ${line}`.trimEnd()).join("\n");
}

/** A code block whose fence is longer than any in the text. */
function fenced(text, language = "") {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`;
}

function oneLine(text) {
  return (text ?? "").replace(/\s+/g, " ").trim();
}
