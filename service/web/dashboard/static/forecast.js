// The forecast: asked for when the verdict has changed or half a minute has passed, and never waited for.

import { get, path } from "./api.js";

const REST_MS = 30000;
const MOST_ARMS = 100;

/** Why there can be no forecast, in words; null where there can be one. */
export function whyNot(recommendation) {
  const active = recommendation.arms.filter((arm) => arm.status === "active").length;
  if (active < 2) return "There is only one active arm, so there is nothing to decide.";
  if (active > MOST_ARMS) return `Forecasts are made for up to ${MOST_ARMS} active arms.`;
  if (recommendation.verdict.state === "collecting") return "Every arm needs two rewards first.";
  return null;
}

/** `changed` is called whenever `newest()` has become another one. */
export function forecasts(key, changed) {
  let newest = null;
  let askedFor = null;
  let askedAt = -Infinity;
  let timer = null;
  let wanted = null;
  let asking = false;

  async function ask() {
    clearTimeout(timer);
    timer = null;
    if (asking || document.hidden) return;
    asking = true;
    askedAt = Date.now();
    askedFor = decisive(wanted);
    try {
      newest = await get(path(key, "forecast"));
      changed();
    } catch {
      // None, or none now: the page says what it knows without it.
    } finally {
      asking = false;
    }
  }

  return {
    newest: () => newest,
    /** The recommendation is this one now. */
    follow(recommendation) {
      wanted = recommendation;
      if (!["running", "paused"].includes(recommendation.status) || whyNot(recommendation)) return;
      if (newest?.version === recommendation.version) return;
      const rest = askedAt + REST_MS - Date.now();
      if (rest <= 0 || decisive(recommendation) !== askedFor) ask();
      else timer ??= setTimeout(ask, rest);
    },
  };
}

const decisive = ({ status, verdict, arms }) =>
  JSON.stringify([status, verdict.state, verdict.reason, verdict.arm, arms.filter((arm) => arm.status === "active").length]);
