// Server-sent events out of a fetch: what EventSource does, plus headers, status codes and an end that can be told.

const EVENT_CHARACTERS = 64 * 1024 * 1024; // a message with pictures; more is a broken server

/** A parser: called with text it answers the events that are now whole, each `{id, data}`. Comments are dropped. */
export function eventParser() {
  let pieces = []; // of an event that has no end yet: put together once, so that a long one costs linear time
  let characters = 0;
  let endsLine = false; // the last piece ended with a line break, which may be the first half of an end
  return (text) => {
    if (text === "") return [];
    const hasEnd = text.includes("\n\n") || (endsLine && text.startsWith("\n"));
    pieces.push(text);
    characters += text.length;
    endsLine = text.endsWith("\n");
    if (!hasEnd) {
      if (characters > EVENT_CHARACTERS) throw new Error("An event of the stream has no end.");
      return [];
    }
    const blocks = pieces.join("").split("\n\n");
    const rest = blocks.pop();
    pieces = rest ? [rest] : [];
    characters = rest.length;
    endsLine = rest.endsWith("\n");
    return blocks.map(parseBlock).filter(Boolean);
  };
}

function parseBlock(block) {
  let id = "";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) id = line.slice(3).trim();
  }
  return data.length ? { id, data: data.join("\n") } : null;
}
