// One experiment, live.

import { h, main, notice, replace, say } from "./dom.js";
import { asker, get, path } from "./api.js";
import { follow, showConnection } from "./live.js";
import { lifecycle } from "./actions.js";
import { answers, firstSentence } from "./answers.js";
import { armsTable } from "./arms.js";
import { auditLog } from "./audit.js";
import { charts } from "./charts.js";
import { download } from "./download.js";
import { figures } from "./figures.js";
import { forecasts } from "./forecast.js";
import { setStatus, status } from "./parts.js";
import { settings } from "./settings.js";
import { firstSteps, showSnippets } from "./snippets.js";
import { standing } from "./standing.js";
import { harmfulSign, verdictSign } from "./verdict.js";

const key = decodeURIComponent(location.pathname.split("/").at(-1));
const REFRESH_MS = 10000;
const now = { experiment: null, recommendation: null };
const state = () => ({ ...now, forecast: outlook.newest() });
const outlook = forecasts(key, () => view && showAnswers());
const askAgain = asker(() => path(key, "recommendation"));

/** Settings, arms and the log change rarely: they are read again when the stream shows that they may have, else after a while. */
let described = "";
let describedAt = 0;
let describing = null;
let again = null;
const shapeOf = ({ status, concluded_arm: served, confidence, verdict, arms }) =>
  JSON.stringify([status, served, confidence, verdict.state, verdict.since, arms.map((arm) => [arm.arm, arm.name, arm.status, arm.harmful])]);
const countsOf = ({ draws, observations, pending }) => `${draws} ${observations} ${pending}`;

async function describe() {
  const [experiment] = await Promise.all([get(path(key)), view?.log.load(now.recommendation.as_of)]);
  now.experiment = experiment;
  describedAt = Date.now();
  if (view && now.recommendation) showSettings();
}

async function take(recommendation) {
  if (now.recommendation && recommendation.version < now.recommendation.version) return;
  const changed = recommendation.version !== now.recommendation?.version;
  const quiet = changed && now.recommendation && countsOf(recommendation) === countsOf(now.recommendation); // not by traffic, then
  now.recommendation = recommendation;
  const shape = shapeOf(recommendation);
  if (shape !== described || quiet || (changed && Date.now() - describedAt > REFRESH_MS)) {
    described = shape;
    describing = describe();
  } else if (changed) again ??= setTimeout(refresh, REFRESH_MS);
  try {
    await describing; // also where another message asked for it: what is shown must not be of two times
  } catch {
    described = "";
    if (!now.experiment) return;
  }
  show();
}

/** What came with the last traffic, too, when no more comes. */
function refresh() {
  again = null;
  if (!document.hidden && Date.now() - describedAt >= REFRESH_MS) describe().catch(() => (described = ""));
}

/** After a change of our own: look at once instead of waiting for the stream. */
async function changed() {
  const recommendation = await get(path(key, "recommendation"));
  described = "";
  await take(recommendation);
}

let view = null;

function build() {
  const name = h("h1", { tabindex: "-1" });
  const pill = status(now.recommendation.status);
  const description = h("p", { class: "description" });
  const sign = verdictSign();
  const harm = harmfulSign();
  const headline = h("p", { class: "headline" });
  const rest = h("p", { class: "rest" });
  const five = answers();
  const counts = figures();
  const drift = h("p", { class: "notice warn", hidden: true });
  const steps = lifecycle(state, changed);
  const code = h("button", { class: "button", type: "button", onClick: () => showSnippets(now.experiment) }, "Code");
  const data = h("button", { class: "button", type: "button", onClick: () => download(now.experiment) }, "Download");
  const first = firstSteps();
  const arms = armsTable(state, changed);
  const pictures = charts(key);
  const log = auditLog(key, (arm) => standing(now.experiment, now.recommendation).named(arm), showAnswers);
  const facts = settings(state, changed);
  const card = h(
    "section",
    { class: "card verdict", "aria-label": "Verdict" },
    h("div", { class: "words" }, h("p", { class: "signs" }, sign, harm), headline),
    five,
    h("div", { class: "more" }, rest, drift, counts),
  );
  replace(
    main(),
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/" }, "Experiments"), h("span", { "aria-hidden": "true" }, "/"), h("span", { class: "key" }, key)),
    h("div", { class: "title" }, h("div", { class: "named" }, name, pill), h("div", { class: "actions" }, code, data, steps)),
    card,
    description,
    first,
    arms.element,
    h("section", { class: "charts", "aria-label": "Charts over time" }, pictures.traffic, pictures.certainty),
    h("div", { class: "charts" }, h("div", { class: "stack" }, pictures.means, log.element), h("div", { class: "stack" }, facts.element)),
  );
  return { name, pill, description, card, sign, harm, headline, rest, five, counts, drift, steps, first, arms, pictures, log, facts };
}

function show() {
  const { experiment, recommendation } = now;
  if (!view) {
    view = build();
    showSettings();
    view.log.load(recommendation.as_of).catch(() => {});
  }
  setStatus(view.pill, recommendation.status);
  view.steps.show(recommendation.status);
  const stand = standing(experiment, recommendation);
  view.sign.show(recommendation.verdict);
  view.card.dataset.state = recommendation.verdict.state;
  view.harm.show(stand.harmful.map((arm) => stand.named(arm.arm)));
  const [first, rest] = firstSentence(recommendation.summary, recommendation.arms.map((arm) => arm.name));
  say(view.headline, first);
  say(view.rest, rest);
  view.rest.hidden = !rest;
  view.counts.show(experiment, recommendation);
  view.drift.hidden = !recommendation.drift.length;
  say(view.drift, `The rewards of ${recommendation.drift.map(stand.named).join(", ")} seem to change over time: the figures may mix different times.`);
  view.first.show(experiment, recommendation);
  view.arms.show(recommendation);
  view.pictures.show(recommendation.version);
  outlook.follow(recommendation);
  showAnswers();
}

function showAnswers() {
  if (view) view.five.show({ ...state(), change: view.log.lastChange(), conclusion: view.log.conclusion() });
}

function showSettings() {
  const { experiment } = now;
  const title = experiment.name || experiment.key;
  say(view.name, title);
  document.title = `${title} · bestarm`;
  say(view.description, experiment.description);
  view.description.hidden = !experiment.description;
  view.facts.show(now);
}

async function begin() {
  try {
    await describe();
  } catch (problem) {
    if (problem.status === 404) {
      replace(main(), notice("No such experiment", `There is no experiment with the key “${key}”.`, h("a", { class: "button primary", href: "/" }, "All experiments")));
    } else {
      showConnection("lost");
      if (!main().querySelector(".empty")) replace(main(), notice("The service does not answer", "This page comes back by itself as soon as it does."));
      setTimeout(begin, 1500);
    }
    return;
  }
  follow(path(key, "stream"), take, async () => {
    const news = await askAgain();
    if (news) await take(news);
  });
}

begin();
