// Events of the audit log, as sentences.

import * as format from "./format.js";
import { AUTHORS } from "./vocabulary.js";

const by = (...authors) => Object.keys(AUTHORS).filter((kind) => authors.includes(AUTHORS[kind]));

/** The kinds that people make happen, and what the service itself found. */
export const BY_PEOPLE = by("people", "operator");
export const FINDINGS = by("watch");

const MOVES = { start: "Started", pause: "Paused", resume: "Resumed", conclude: "Concluded", reopen: "Reopened", archive: "Archived" };
const RULE = "conclude_when";

export const isByPeople = ({ kind, details }) => BY_PEOPLE.includes(kind) && !(kind === "lifecycle" && details.by === RULE);

/** Who did it, as far as is known. */
export function doer({ kind, actor, details }) {
  if (["watch", "sweep"].includes(AUTHORS[kind])) return "by the service";
  if (details.by === RULE) return "by its own rule";
  if (AUTHORS[kind] === "operator") return "by an operator";
  if (actor) return `by ${actor.label ?? actor.id}`;
  return details.by && details.by !== "request" ? `by ${details.by}` : "by request";
}

/** What an event did. `named` gives an arm's name by its key. */
export function sentence({ kind, arm, draw, details }, named = (key) => key) {
  switch (kind) {
    case "created":
      return details.duplicated_from ? `Created as a duplicate of ${details.duplicated_from}` : "Created";
    case "lifecycle":
      return move(details, named);
    case "patch":
      return `${format.capital(changes(details.before, details.after, named))}`;
    case "arm_added":
      return `Arm ${arm ?? details.arm?.key} added`;
    case "arm_changed":
      if (details.after?.status) return `Arm ${arm} ${details.after.status === "active" ? "enabled" : "disabled"}`;
      return `Arm ${arm} changed: ${changes(details.before, details.after, named)}`;
    case "correction":
      return `Reward of draw ${format.count(draw)} (${arm}) corrected: ${told(details.before)} → ${told(details.after)}`;
    case "void":
      return `Draw ${format.count(draw)} (${arm}) voided`;
    case "observation_edit":
      return `Observation ${details.observation} (${arm}) corrected: ${told(details.before)} → ${told(details.after)}`;
    case "observation_void":
      return `Observation ${details.observation} (${arm}) voided`;
    case "expiry_run":
      return `${format.count(details.expired)} silent draw${details.expired === 1 ? "" : "s"} expired`;
    case "pruned":
      return `Pruned: its ${format.plural(details.draws, "assignment")} and single rewards are gone, its counts stay`;
    case "forgotten":
      return `A unit forgotten: ${format.plural(details.assignments, "assignment")} without its name`;
    case "renamed":
      return `Loaded as ${details.after.key}, a copy of ${details.before.key}`;
    case "separated":
      return `Shown: ${named(details.better)} is better than ${named(details.worse)}`;
    case "harmful":
      return `Shown: ${named(details.worse)} is harmful, worse than ${named(details.better)}, the control`;
    case "beats_control":
      return `Shown: ${named(details.better)} is better than ${named(details.worse)}, the control`;
    case "decided":
      return `Shown: no other arm is better than ${named(details.better)} by what is worthwhile`;
    case "leader_changed":
      if (!arm) return "No arm leads any more";
      return details.previous ? `${named(arm)} leads, before it was ${named(details.previous)}` : `${named(arm)} leads`;
    case "drift_noticed":
      return `Drift: recent rewards of ${details.drifting.map(named).join(", ")} do not look like earlier ones`;
    default: // its name and its arm say it
      return `${format.capital(kind.replaceAll("_", " "))}${arm ? `: ${named(arm)}` : ""}`;
  }
}

function move(details, named) {
  const word = MOVES[details.move] ?? details.move;
  const served = details.move === "conclude" ? details.after?.concluded_arm : null;
  const rule = details.by === RULE ? ", by its own rule" : details.by && details.by !== "request" ? ` by ${details.by}` : "";
  if (details.move === "reopen") return `${word}: paused again${details.before?.conclude_when ? ", without its rule to conclude by itself" : ""}`;
  return `${word}${served ? ` with ${named(served)}` : ""}${rule}`;
}

const told = (state) => (state?.reward === null || state?.reward === undefined ? (state?.status ?? "–") : format.number(state.reward));

const WORDS = { conclude_when: "rule to conclude by itself", min_share: "floor", worthwhile: "worthwhile difference" };

/** Each setting with what it became, and where that is short, with what it was. */
const changes = (before = {}, after = {}, named) =>
  Object.entries(after)
    .map(([name, value]) => {
      const [was, is] = [before[name], value].map((one) => written(name, one, named));
      const word = WORDS[name] ?? name.replaceAll("_", " ");
      if (is.length > 40) return `${word} changed`;
      return was.length > 24 || before[name] === undefined ? `${word} → ${is}` : `${word} ${was} → ${is}`;
    })
    .join(", ");

function written(name, value, named) {
  if (value === null || value === undefined || value === "") return "none";
  if (name === "confidence" || name === "min_share") return `${+(value * 100).toPrecision(6)}%`;
  if (name === "control") return named(value);
  if (name === "tags") return value.join(", ") || "none";
  if (name === "sticky") return value ? "on" : "off";
  if (name === "expiry") return `after ${format.span(value.after_seconds)} ${value.reward === null ? "dropped" : format.number(value.reward)}`;
  if (name === "conclude_when") return rule(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** When an experiment concludes by itself. */
export function rule(value) {
  const when = value.beats_control ? "an arm beats the control" : value.decided ? "decided" : "separated";
  return `when ${when}${value.min_observations ? `, after ${format.plural(value.min_observations, "observation")}` : ""}`;
}
