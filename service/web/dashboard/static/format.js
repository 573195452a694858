// Numbers and times for people.

const whole = new Intl.NumberFormat("en");
const times = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];

export const count = (value) => whole.format(value);

export function percent(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  return `${(value * 100).toFixed(digits)}%`;
}

/** How sure; never rounded up to a certainty that nobody has. */
export function certainty(error) {
  if (error === null || error === undefined) return "–";
  if (error > 0 && error < 0.0005) return "> 99.9%";
  return percent(1 - error);
}

export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(2).replace("-", "−");
  const digits = size >= 1000 ? 0 : Math.max(0, 4 - Math.max(1, Math.ceil(Math.log10(size || 1))));
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(value).replace("-", "−");
}

/** A reward: rates as percentages, anything else as a number. */
export function reward(value, kind) {
  if (value === null || value === undefined) return "–";
  return kind === "binary" ? percent(value) : number(value);
}

export const moment = (iso) => times.format(new Date(iso));

export function since(iso) {
  const seconds = (new Date(iso) - Date.now()) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return ago.format(Math.round(seconds / size), unit);
  }
  return "just now";
}

export function span(seconds) {
  for (const [unit, size] of UNITS) {
    if (seconds >= size && Number.isInteger(seconds / size)) return plural(seconds / size, unit);
  }
  return plural(seconds, "second");
}

export const plural = (value, word) => `${typeof value === "number" ? number(value) : value} ${word}${value === 1 ? "" : "s"}`;
