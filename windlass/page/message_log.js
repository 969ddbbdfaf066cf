// The messages of one session, in order, and how events change them. No requests and no DOM: only the decisions.

const FIRST_DATA = {
  text: () => ({ text: "" }),
  reasoning: () => ({ thinking: "", signature: "", started_at: 0, finished_at: 0 }),
  tool_call: ({ id, name }) => ({ id, name, input: "" }),
  tool_result: ({ id, name }) => ({
    tool_call_id: id, name, content: "", metadata: "", is_error: false, unfinished: true,
  }),
};

/** A log: `list` is the array that everyone reads. */
export function createMessageLog() {
  const list = [];
  const places = new Map(); // message id -> index in the list
  const lengths = new WeakMap(); // part -> code points of its streamed field; JavaScript counts UTF-16 units instead
  return { list, replaceAll, put, remove, grow, before, has: (id) => places.has(id) };

  function replaceAll(messages) {
    list.length = 0;
    places.clear();
    messages.forEach(put);
  }

  /** A whole message: it replaces what there was. */
  function put(message) {
    const place = places.get(message.id);
    if (place !== undefined) {
      list[place] = message;
      return;
    }
    places.set(message.id, list.length);
    list.push(message);
  }

  function remove(id) {
    const place = places.get(id);
    if (place === undefined) return;
    list.splice(place, 1);
    places.clear();
    list.forEach((message, index) => places.set(message.id, index));
  }

  /** The id of the message before this one, "" for the first: how a single message is asked for again. */
  function before(id) {
    const place = places.get(id);
    return place ? list[place - 1].id : "";
  }

  /** Text that was added to a part. Answers "hole" when something before it is missing, else whether it was news. */
  function grow(delta) {
    const place = places.get(delta.message_id);
    if (place === undefined) return "hole";
    const { parts } = list[place];
    if (delta.part > parts.length) return "hole";
    if (delta.part === parts.length) {
      const first = FIRST_DATA[delta.type];
      if (!first) return "hole";
      parts.push({ type: delta.type, data: first(delta) });
    }
    const part = parts[delta.part];
    const have = lengths.get(part) ?? codePoints(part.data[delta.field] ?? "");
    if (delta.at > have) return "hole";
    const fresh = withoutStart(delta.text, have - delta.at);
    if (fresh === "") return false;
    part.data[delta.field] = (part.data[delta.field] ?? "") + fresh;
    lengths.set(part, have + codePoints(fresh));
    return true;
  }
}

function codePoints(text) {
  let count = 0;
  for (const _ of text) count += 1; // a string is walked by code points
  return count;
}

function withoutStart(text, count) {
  if (count === 0) return text;
  let index = 0;
  for (let skipped = 0; skipped < count && index < text.length; skipped += 1) {
    index += text.codePointAt(index) > 0xffff ? 2 : 1;
  }
  return text.slice(index);
}
