// Questions before anything changes, and what went wrong if it could not.

import { h, replace } from "./dom.js";
import { Problem } from "./api.js";
import { placeErrors, clearErrors } from "./fields.js";
import { forgetWhenMended, inTypedUnits } from "./form_errors.js";

let number = 0;

/**
 * Ask before doing. `question`: title, text (paragraphs), action (the button's word), fields (elements), grave, wide, and
 * run(form), which may answer false: then the question stays. Resolves to true when it was done.
 */
export function confirmed(question) {
  const id = `question-${(number += 1)}`;
  const form = h("form", { method: "dialog", novalidate: true });
  const dialog = h("dialog", { "aria-labelledby": id, class: question.wide ? "wide" : null }, form);
  const error = h("p", { class: "form-error", role: "alert", hidden: true });
  const go = h("button", { class: question.grave ? "button grave" : "button primary", type: "submit" }, question.action);
  const cancel = h("button", { class: "button", type: "button", onClick: () => dialog.close() }, "Cancel");
  replace(
    form,
    h("h2", { id }, question.title),
    [question.text].flat().map((text) => h("p", {}, text)),
    question.fields ?? [],
    error,
    h("p", { class: "actions" }, cancel, go),
  );
  forgetWhenMended(form, error);
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
        done = (await question.run(form)) !== false;
        if (done) dialog.close();
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        const unplaced = placeErrors(form, inTypedUnits(form, problem));
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

/** Something to read, until it is closed; resolves then. */
export function shown(title, ...content) {
  const id = `question-${(number += 1)}`;
  const dialog = h("dialog", { "aria-labelledby": id, class: "wide" });
  const close = h("button", { class: "button", type: "button", onClick: () => dialog.close() }, "Close");
  const before = document.activeElement;
  replace(dialog, h("div", { class: "dialog-content" }, h("h2", { id }, title), content, h("p", { class: "actions" }, close)));
  const closed = new Promise((resolve) =>
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before?.isConnected) before.focus();
      resolve();
    }),
  );
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
  return closed;
}
