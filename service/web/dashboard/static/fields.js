// Form fields, each knowing the place of its value in the request (a JSON pointer), and messages beside them.

import { h } from "./dom.js";
import { Problem } from "./api.js";

let number = 0;

/** A labelled field. `pointer`: where the API says something is wrong with it. */
export function field(label, pointer, input, hint) {
  const id = `f${(number += 1)}`;
  const control = input.matches("input, select, textarea") ? input : input.querySelector("input, select, textarea");
  control.id = id;
  control.dataset.pointer = pointer;
  const hinted = hint ? h("small", { id: `${id}-hint`, class: "hint" }, hint) : null;
  const message = h("small", { id: `${id}-error`, class: "field-error", hidden: true });
  control.setAttribute("aria-describedby", [hint && `${id}-hint`, `${id}-error`].filter(Boolean).join(" "));
  return h("div", { class: "field" }, h("label", { for: id }, label), input, hinted, message);
}

/** Words instead of a validator's. */
function readable(pointer, detail) {
  if (detail.startsWith("String should match pattern") && /key$|^\/arm$/.test(pointer)) {
    return "1 to 64 lower-case letters, digits, dots, dashes or underscores; begin with a letter or digit.";
  }
  if (detail === "Field required") return "This is needed.";
  return detail.replace("Value error, ", "").replace(/^(Input|String|Value) should/, "This should");
}

/** Show each message beside its field; what belongs to no field is returned. The first bad field gets the focus. */
export function placeErrors(form, problem) {
  const unplaced = problem.fields.length ? [] : [problem.message];
  const controls = [...form.querySelectorAll("[data-pointer]")].filter((control) => !control.closest("[hidden]"));
  let first = null;
  for (const { pointer, detail } of problem.fields) {
    const text = readable(pointer, detail);
    const near = controls
      .filter((control) => pointer === control.dataset.pointer || (control.dataset.pointer !== "" && pointer.startsWith(control.dataset.pointer + "/")))
      .sort((a, b) => b.dataset.pointer.length - a.dataset.pointer.length);
    const control = near[0] ?? null;
    if (control) {
      mark(control, text);
      first ??= control;
    } else unplaced.push(text);
  }
  (first?.matches("input, select, textarea") ? first : first?.querySelector("input, select, textarea"))?.focus();
  return unplaced;
}

export function mark(control, text) {
  const message = document.getElementById(`${control.id}-error`);
  message.textContent = message.hidden ? text : `${message.textContent} ${text}`;
  message.hidden = false;
  control.setAttribute("aria-invalid", "true");
}

export function clearErrors(form) {
  for (const message of form.querySelectorAll(".field-error")) {
    message.hidden = true;
    message.textContent = "";
  }
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

/** A number as it was typed, in units of which `scale` make one; what is no number stays text, so that the API says what is wrong. */
export function numeric(control, scale = 1) {
  const text = control.value.trim();
  if (text === "") return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) return text;
  return scale === 1 ? value : Number((value / scale).toPrecision(15));
}

/** JSON as it was typed, or a problem beside the field. */
export function json(control) {
  const text = control.value.trim();
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(422, {
      detail: "Not JSON.",
      errors: [{ pointer: control.dataset.pointer, detail: 'This is not JSON. Text needs quotes: "green".' }],
    });
  }
}
