// Files that go along with a prompt: by button, by paste, by drop. They travel as base64 in the prompt's request, so
// together they must fit into one.

import { h } from "./dom.js";
import { bytes } from "./figures.js";
import { icon } from "./icons.js";
import { keyedList } from "./keyed.js";
import { prose } from "./visible.js";

const FILES = 20; // with one prompt
const FILES_BYTES = 11_500_000; // together; base64 adds a third, and the server takes 16 MiB with everything around it
const SNIFFED_BYTES = 4_096; // looked at to tell text from the rest when the browser does not know the type

/** The attachments of the prompt that is being written. `list` is what a prompt takes. */
export function attachmentsView(app, changed) {
  let files = []; // {key, file_path, file_name, mime_type, content, size}
  let keys = 0;
  const element = h("ul.attachments", { "aria-label": "Attached files", hidden: true });
  const render = keyedList(element, (one) => one.key, chip);
  const picker = h("input", {
    type: "file", multiple: true, hidden: true, "aria-label": "Files to attach", onchange: picked,
  });
  const button = h(
    "button.quiet.icon",
    { type: "button", "aria-label": "Attach files", dataset: { testid: "attach-file" }, onclick: () => picker.click(),
      title: `Attach files (at most ${FILES}, together ${bytes(FILES_BYTES)}); pasting and dropping work too` },
    icon("attach"),
  );
  return { element, button, picker, add, all: () => files, replace, wire };

  function replace(list) {
    files = list;
    render(files);
    element.hidden = files.length === 0;
    changed();
  }

  /** Add files, as far as they fit; says which did not. */
  async function add(found) {
    for (const file of found) {
      const size = files.reduce((sum, one) => sum + one.size, 0) + file.size;
      if (files.length >= FILES) return app.notify(`At most ${FILES} files go with one prompt.`, "error");
      if (size > FILES_BYTES) {
        const bound = `attached files may have ${bytes(FILES_BYTES)} together`;
        app.notify(`${file.name} does not fit: ${bound}. Put it into the directory instead.`, "error");
        continue;
      }
      try {
        const entry = { key: ++keys, size: file.size, ...(await asAttachment(file)) };
        replace([...files, entry]);
      } catch {
        app.notify(`${file.name} could not be read.`, "error");
      }
    }
  }

  function picked() {
    add([...picker.files]);
    picker.value = ""; // so that the same file can be chosen again
  }

  function chip(file) {
    const takeOut = () => replace(files.filter((one) => one.key !== file.key));
    const label = `Remove ${file.file_name}`;
    const remove = h("button.quiet.icon", { type: "button", "aria-label": label, onclick: takeOut }, icon("close", 14));
    const name = h("span", null, prose(file.file_name));
    const item = h("li.chip", null, name, h("span.soft", null, bytes(file.size)), remove);
    return { element: item, update: () => {} };
  }

  /** Take pasted files in `field`, and files dropped anywhere on `area`. */
  function wire(field, area) {
    field.addEventListener("paste", (event) => {
      const found = [...(event.clipboardData?.files ?? [])];
      if (found.length === 0) return;
      event.preventDefault();
      add(found);
    });
    area.addEventListener("dragover", (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      area.classList.add("dropping");
    });
    area.addEventListener("dragleave", (event) => {
      if (!area.contains(event.relatedTarget)) area.classList.remove("dropping");
    });
    area.addEventListener("drop", (event) => {
      area.classList.remove("dropping");
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault(); // else the browser would leave the page and show the file
      add([...event.dataTransfer.files]);
    });
  }
}

/** The prompt's form of an attachment, without what only this file needs. */
export function forPrompt({ file_path, file_name, mime_type, content }) {
  return { file_path, file_name, mime_type, content };
}

async function asAttachment(file) {
  const address = await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
  const type = file.type || ((await looksLikeText(file)) ? "text/plain" : "application/octet-stream");
  const content = address.slice(address.indexOf(",") + 1);
  return { file_path: file.name, file_name: file.name, mime_type: type, content };
}

async function looksLikeText(file) {
  const start = new Uint8Array(await file.slice(0, SNIFFED_BYTES).arrayBuffer());
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: true }); // a character may be cut at the end
    return !start.includes(0);
  } catch {
    return false;
  }
}
