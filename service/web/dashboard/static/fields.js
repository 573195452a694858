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

/** Numbers in the unit in which the field is filled in: less than 100%, where the API says less than 1. */
function inUnits(control, detail) {
  const scale = Number(control?.dataset.scale ?? 1);
  if (scale === 1) return detail;
  const unit = control.dataset.unit ?? (scale === 100 ? "%" : "");
  return detail.replace(/(?<![\w.])-?\d+(\.\d+)?(e-?\d+)?(?![\w.]*\w)/g, (number) => `${+(Number(number) * scale).toPrecision(12)}${unit}`);
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
    const near = controls
      .filter((control) => pointer === control.dataset.pointer || (control.dataset.pointer !== "" && pointer.startsWith(control.dataset.pointer + "/")))
      .sort((a, b) => b.dataset.pointer.length - a.dataset.pointer.length);
    const control = near[0] ?? null;
    const text = readable(pointer, inUnits(control, detail));
    if (control) {
      mark(control, text);
      first ??= control;
    } else unplaced.push(text);
  }
  (first?.matches("input, select, textarea") ? first : first?.querySelector("input, select, textarea"))?.focus();
  return unplaced;
}

/** Say beside a field what is wrong with it; the words go when it is changed. */
export function mark(control, text) {
  const message = document.getElementById(`${control.id}-error`);
  message.textContent = message.hidden ? text : `${message.textContent} ${text}`;
  message.hidden = false;
  control.setAttribute("aria-invalid", "true");
  for (const change of ["input", "change"]) control.addEventListener(change, () => unmark(control), { once: true });
}

function unmark(control) {
  const message = document.getElementById(`${control.id}-error`);
  control.removeAttribute("aria-invalid");
  if (!message) return;
  message.hidden = true;
  message.textContent = "";
}

export function clearErrors(form) {
  for (const control of form.querySelectorAll("[aria-invalid]")) unmark(control);
}

/** A number as it was typed, in units of which `scale` make one; what is no number stays text, so that the API says what is wrong. */
export function numeric(control, scale = 1) {
  control.dataset.scale = scale;
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
