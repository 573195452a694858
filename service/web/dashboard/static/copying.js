// A button that puts a text on the clipboard.

import { h, say } from "./dom.js";

/** `source`: the element whose text is copied. */
export function copier(source) {
  const copied = h("span", { class: "muted", role: "status" });
  const button = h("button", { class: "button small", type: "button", onClick: put }, "Copy");
  const element = h("span", { class: "actions" }, copied, button);

  async function put() {
    try {
      await navigator.clipboard.writeText(source.textContent);
      say(copied, "Copied");
    } catch {
      getSelection().selectAllChildren(source); // no clipboard here: it is ready for the reader's own hand
      say(copied, "Selected: copy it with the keyboard");
    }
  }
  element.forget = () => say(copied, "");
  return element;
}
