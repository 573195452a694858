// An experiment in the list. Whatever a row says of an arm, it says of the arm that it names.

import { h, replace, say } from "./dom.js";
import { setStatus, status } from "./parts.js";
import { sparkline } from "./sparkline.js";
import { harmfulSign, verdictSign } from "./verdict.js";
import * as format from "./format.js";

/** Each column: its heading, the order that its first click asks for, and what it counts. */
export const COLUMNS = [
  ["Experiment", "name", "Name and key, its tags and its owner"],
  ["Status", "status", "Where it is in its life, from draft to archived"],
  ["Verdict", "-verdict", "May it stop? The percentage is how far the evidence has come to a verdict: of the pair of arms that holds it up"],
  ["Arm", null, "The arm that is served, once concluded; that may be taken, once decided; that leads, until then"],
  ["Lift", "-lift", "How much better this arm is than the control, the arm that is live today, with the interval that holds at every look"],
  ["Share", "-share", "This arm’s share of the traffic now, and since the start, from 0 to 100%"],
  ["Traffic", "-rate", "Draws a day of late, and draws in all"],
  ["Started", "-started", "When the first visitor got an arm"],
  ["Forecast", null, "When the verdict will be there at the present traffic, by playing the experiment on: the median"],
];

const MINUTE_MS = 60000;
const DAY_MS = 86400000;
const SOON_MS = 2 * DAY_MS;
const QUIET_MS = DAY_MS;
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const daysOfYears = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const date = (time) => (new Date(time).getFullYear() === new Date().getFullYear() ? days : daysOfYears).format(new Date(time));
const fullTime = (time) => `${format.moment(time)} (${zone})`;
const named = (arm) => arm.name || arm.key;

function signed(value, text) {
  return (value > 0 ? "+" : value < 0 ? "−" : "±") + text(Math.abs(value));
}

/** The lift as a part of the control where that can be said, else in the units of the reward: value, interval, and what is shown. */
export function liftTexts({ lift, reward }) {
  const relative = lift.ratio !== null;
  const [value, interval] = relative
    ? [lift.ratio - 1, lift.ratio_interval?.map((end) => end - 1)]
    : [lift.difference, lift.difference_interval];
  const plain = reward.kind === "binary" ? (size) => `${(size * 100).toFixed(1)} pts` : format.number;
  const text = relative ? (size) => (size >= 10 ? "999%+" : `${(size * 100).toFixed(size < 0.1 ? 1 : 0)}%`) : plain;
  const shown = !interval || interval[0] * interval[1] <= 0 ? 0 : (reward.goal === "maximize" ? 1 : -1) * value;
  return {
    value: signed(value, text),
    interval: interval ? `${signed(interval[0], text).replace(" pts", "")} to ${signed(interval[1], text)}` : "",
    way: shown > 0 ? "better" : shown < 0 ? "worse" : "",
  };
}

/** When the verdict will be there, or since when it is: words, more words below, and all of it. */
export function forecastTexts({ status: life, verdict, forecast }) {
  if (verdict.state === "decided") return verdict.since ? [`since ${date(verdict.since)}`, "", `Decided since ${fullTime(verdict.since)}`] : ["now", "", ""];
  if (life !== "running") return ["–", "", "A forecast needs traffic"];
  if (verdict.state === "collecting") return ["–", "", "Too early to tell"];
  if (!forecast) return ["–", "", "Still being computed, or there are too many arms"];
  if (forecast.never) return ["probably never", "", "Hardly anything sets the best arms apart; a difference that is worthwhile would end it"];
  if (forecast.draws.median === null) return ["not in sight", "", "In most futures there is no verdict within a thousand times the rewards so far"];
  const draws = `${short.format(forecast.draws.median)} draws`;
  const at = forecast.at?.median;
  if (!at) return [draws, "to go", "Half of the futures played have the verdict by then"];
  const wait = new Date(at) - Date.now();
  const [low, high] = [forecast.at.low, forecast.at.high].map((end) => (end ? fullTime(end) : "not in sight"));
  const words = wait < MINUTE_MS ? "any time now" : wait < SOON_MS ? format.since(at) : date(at);
  return [words, `${draws} to go`, `Median ${fullTime(at)}; in four of five futures between ${low} and ${high}`];
}

export function trafficText({ status: life, rate_per_day: rate, as_of: last }) {
  const silence = Date.now() - new Date(last);
  if (life !== "running" || rate === null) return "–";
  if (silence > QUIET_MS) return `quiet for ${format.plural(Math.floor(silence / DAY_MS), "day")}`;
  return `${short.format(rate)} a day`;
}

/** A row; `narrow` filters the list by a tag or an owner. */
export function listRow(experiment, narrow) {
  const name = h("a", { href: `/experiments/${encodeURIComponent(experiment.key)}` });
  const labels = h("span", { class: "labels" });
  const pill = status(experiment.status);
  const sign = verdictSign({ short: true });
  const harm = harmfulSign();
  const leader = h("span", { class: "leader" });
  const two = () => [h("span", { class: "number" }), h("span", { class: "under number" })];
  const [lift, liftInterval] = two();
  const [rate, draws] = two();
  const [started, ago] = two();
  const [expected, toGo] = two();
  const share = h("span", { class: "number" });
  const line = h("span", { class: "spark-place" });
  const cell = (label, kind, ...content) => h("td", { role: "cell", "data-label": label, class: kind }, content);
  const forecastCell = cell("Forecast", null, expected, toGo);
  const startedCell = cell("Started", null, started, ago);
  const armCell = cell("Arm", null, leader);
  const element = h(
    "tr",
    { role: "row", "data-key": experiment.key },
    cell("Experiment", null, name, h("span", { class: "key" }, experiment.key), labels),
    cell("Status", null, pill),
    cell("Verdict", "verdict-cell", sign, harm),
    armCell,
    cell("Lift", "amount", lift, liftInterval),
    cell("Share", null, h("span", { class: "share-line" }, line, share)),
    cell("Traffic", "amount", rate, draws),
    startedCell,
    forecastCell,
  );
  // The link covers the row, except for cells that say more to whoever points at them: a click on those follows it as well.
  element.addEventListener("click", (event) => event.target.closest("a, button") || name.dispatchEvent(new MouseEvent("click", event)));
  let drawn = null;
  let labelled = null;

  function showLabels({ tags, owner }) {
    const wanted = JSON.stringify([tags, owner]);
    if (wanted === labelled) return;
    labelled = wanted;
    const label = (kind, value, title) => h("button", { type: "button", class: `label ${kind}`, title, onClick: () => narrow({ [kind]: value }) }, value);
    replace(labels, tags.map((tag) => label("tag", tag, `Only experiments with the tag ${tag}`)), owner && label("owner", owner, `Only experiments of ${owner}`));
  }

  function showLift(now) {
    const told = now.lift && liftTexts(now);
    lift.className = `number ${told ? told.way : "muted"}`;
    if (told) {
      say(lift, told.value);
      say(liftInterval, told.interval);
      return;
    }
    say(lift, now.control && now.arm?.key === now.control.key ? "is the control" : now.control ? "–" : "no control");
    say(liftInterval, "");
  }

  return {
    element,
    show(now) {
      say(name, now.name || now.key);
      showLabels(now);
      setStatus(pill, now.status);
      sign.show(now.verdict);
      harm.show(now.harmful);
      say(leader, now.arm ? named(now.arm) : "none yet");
      leader.classList.toggle("muted", !now.arm);
      armCell.title = now.arm ? named(now.arm) : "";
      showLift(now);
      say(share, now.arm ? format.percent(now.share, 0) : "–");
      say(rate, trafficText(now));
      rate.classList.toggle("muted", now.status !== "running");
      say(draws, format.plural(now.draws, "draw").replace(/^\S+/, format.count(now.draws)));
      say(started, now.started_at ? date(now.started_at) : "not yet");
      started.classList.toggle("muted", !now.started_at);
      say(ago, now.started_at ? format.since(now.started_at) : "");
      if (now.started_at) startedCell.title = fullTime(now.started_at);
      const [words, below, all] = forecastTexts(now);
      say(expected, words);
      expected.classList.toggle("muted", words === "–");
      say(toGo, below);
      forecastCell.title = all;
      const values = JSON.stringify(now.sparkline);
      if (values !== drawn) replace(line, sparkline(now.sparkline));
      drawn = values;
    },
  };
}
