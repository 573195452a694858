// Numbers and times for people.

const whole = new Intl.NumberFormat("en");
const times = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];

export const count = (value) => whole.format(value);

/** A count that is a guess: two digits that say something. */
export const roughly = (value) => whole.format(value < 100 ? value : Number(value.toPrecision(2)));

export function percent(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  return `${(value * 100).toFixed(digits)}%`;
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

/** The time zone that all times of a page are in: the viewer's. */
export const zone = () => times.resolvedOptions().timeZone;

const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const daysOfYears = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** A moment as exactly as it matters: the time of today, the day of this year, else the day with its year. */
export function about(iso) {
  const then = new Date(iso);
  const today = new Date();
  if (then.toDateString() === today.toDateString()) return `today, ${hours.format(then)}`;
  return (then.getFullYear() === today.getFullYear() ? days : daysOfYears).format(then);
}

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


/** As many digits after the point as keep three or four that say something, of the largest of some numbers. */
function digitsFor(values) {
  const most = Math.max(0, ...values.filter((value) => Number.isFinite(value)).map(Math.abs));
  if (most === 0) return 2;
  const place = Math.floor(Math.log10(most));
  return Math.min(8, Math.max(0, (place < 0 ? 2 : 3) - place));
}

/** Writes the rewards of one column, all with the same digits: `amount`, `difference` (with its sign) and ranges of both. */
export function rewards(kind, values) {
  const rate = kind === "binary";
  const scale = rate ? 100 : 1;
  const known = values.filter((value) => value !== null && value !== undefined);
  const digits = rate ? Math.min(3, Math.max(1, digitsFor(known.map((value) => value * 100)) - 1)) : digitsFor(known);
  const most = Math.max(0, ...known.map(Math.abs));
  const exact = new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const plain = (value) => {
    if (!rate && most !== 0 && (most >= 1e9 || most < 1e-6)) return value.toExponential(3).replaceAll("-", "−");
    return exact.format(value * scale === 0 ? 0 : value * scale).replace("-", "−");
  };
  const signed = (value) => (plain(value).startsWith("−") ? "" : "+") + plain(value);
  const unit = rate ? "%" : "";
  return {
    amount: (value) => (value === null || value === undefined ? "–" : plain(value) + unit),
    range: ([low, high]) => `${plain(low)}${unit} to ${plain(high)}${unit}`,
    size: (value) => `${plain(Math.abs(value))}${rate ? " points" : ""}`,
    difference: (value) => `${signed(value)}${rate ? " points" : ""}`,
    differences: ([low, high]) => `${signed(low)} to ${signed(high)}`,
  };
}

export const ratio = (value) => (value >= 100 ? "over 100×" : `${value.toFixed(2)}×`);

export const capital = (words) => words && words[0].toUpperCase() + words.slice(1);

/** Some names in a row: A; A and B; A, B and 7 others. */
export function names(list, most = 3) {
  if (list.length <= 1) return list[0] ?? "";
  if (list.length <= most) return `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`;
  return `${list.slice(0, most - 1).join(", ")} and ${list.length - most + 1} others`;
}
