// Questions before anything changes, and what went wrong if it could not.

import { h, replace } from "./dom.js";
import { Problem } from "./api.js";
import { placeErrors, clearErrors } from "./fields.js";

/**
 * Ask before doing. `question`: title, text (paragraphs), action (the button's word), fields (elements), focus, run(form).
 * Resolves to true when it was done.
 */
export function confirmed(question) {
  const form = h("form", { method: "dialog", novalidate: true });
  const dialog = h("dialog", { "aria-labelledby": "question" }, form);
  const error = h("p", { class: "form-error", role: "alert", hidden: true });
  const go = h("button", { class: question.grave ? "button grave" : "button primary", type: "submit" }, question.action);
  const cancel = h("button", { class: "button", type: "button", onClick: () => dialog.close() }, "Cancel");
  replace(
    form,
    h("h2", { id: "question" }, question.title),
    [question.text].flat().map((text) => h("p", {}, text)),
    question.fields ?? [],
    error,
    h("p", { class: "actions" }, cancel, go),
  );
  document.body.append(dialog);
  const before = document.activeElement;
  return new Promise((resolve) => {
    let done = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      clearErrors(form);
      error.hidden = true;
      go.disabled = true;
      try {
        await question.run(form);
        done = true;
        dialog.close();
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        const unplaced = placeErrors(form, problem);
        error.textContent = unplaced.join(" ");
        error.hidden = !unplaced.length;
      } finally {
        go.disabled = false;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before?.isConnected) before.focus();
      resolve(done);
    });
    dialog.showModal();
    (question.fields ? form.querySelector("input, select, textarea") : cancel)?.focus();
  });
}
