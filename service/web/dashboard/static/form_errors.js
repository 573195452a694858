// Messages of the API in the units that people typed, which leave when the field is mended.

const figure = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

/** Say how a field shows the API's numbers: `factor` of them, with a unit (percent: 100 and "%"). */
export function shown(control, factor, unit) {
  control.dataset.factor = factor;
  control.dataset.unit = unit;
  return control;
}

/** The same problem with each number in a message as the field beside it shows it. */
export function inTypedUnits(form, problem) {
  const controls = [...form.querySelectorAll("[data-pointer]")];
  for (const error of problem.fields) {
    const control = controls.find((one) => one.dataset.pointer === error.pointer && one.dataset.factor);
    if (!control || Number(control.dataset.factor) === 1) continue;
    error.detail = error.detail.replace(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi, (digits) => figure.format(Number(digits) * Number(control.dataset.factor)) + control.dataset.unit);
  }
  return problem;
}

/** Whoever changes a field has read what was wrong with it. */
export function forgetWhenMended(form, whole) {
  form.addEventListener("input", (event) => {
    whole.hidden = true;
    const control = event.target;
    const message = control.id && document.getElementById(`${control.id}-error`);
    if (!message || message.hidden) return;
    message.hidden = true;
    message.textContent = "";
    control.removeAttribute("aria-invalid");
  });
}
