// Code to paste: an ask and a tell of this experiment, in three languages.

import { h, replace, say } from "./dom.js";
import { shown } from "./dialog.js";

const REWARDS = { binary: () => "1", bounded: (reward) => String(reward.max), real: () => "12.5" };

/** The snippets of an experiment at an address, by language. */
export function snippetsOf(experiment, origin) {
  const json = "-H 'Content-Type: application/json'";
  const base = `${origin}/v1/experiments/${experiment.key}`;
  const reward = REWARDS[experiment.reward.kind](experiment.reward);
  const tell = experiment.sticky ? "by the unit, which keeps its arm" : "by the id of the assignment";
  return {
    curl: (experiment.sticky
      ? [
          `curl -s -X POST ${base}/assignments \\`,
          `  ${json} -d '{"unit": "user-42"}'`,
          `curl -s -X POST ${base}/rewards \\`,
        ]
      : [
          `id=$(curl -s -X POST ${base}/assignments \\`,
          `  ${json} -d '{}' | grep -o 'asg_[0-9a-f]*' | head -1)`,
          `curl -s -X POST ${base}/assignments/$id/reward \\`,
        ]
    )
      .concat(`  ${json} -d '${experiment.sticky ? `{"rewards": [{"unit": "user-42", "reward": ${reward}}]}` : `{"reward": ${reward}}`}'`)
      .join("\n"),
    Python: [
      "import httpx",
      "",
      `experiment = httpx.Client(base_url="${base}")`,
      `assignment = experiment.post("/assignments", json={${experiment.sticky ? '"unit": "user-42"' : ""}}).raise_for_status().json()`,
      'print(assignment["arm"], assignment["value"])',
      "",
      `# Later, when it is known what happened: ${tell}.`,
      experiment.sticky
        ? `experiment.post("/rewards", json={"rewards": [{"unit": "user-42", "reward": ${reward}}]}).raise_for_status()`
        : `experiment.post(f"/assignments/{assignment['id']}/reward", json={"reward": ${reward}}).raise_for_status()`,
    ].join("\n"),
    TypeScript: [
      `const experiment = "${base}";`,
      "const post = (path: string, body: object) =>",
      '  fetch(experiment + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });',
      "",
      `const assignment = await (await post("/assignments", {${experiment.sticky ? ' unit: "user-42" ' : ""}})).json();`,
      "console.log(assignment.arm, assignment.value);",
      "",
      `// Later, when it is known what happened: ${tell}.`,
      experiment.sticky ? `await post("/rewards", { rewards: [{ unit: "user-42", reward: ${reward} }] });` : `await post(\`/assignments/\${assignment.id}/reward\`, { reward: ${reward} });`,
    ].join("\n"),
  };
}

/** The snippets, one at a time, each with a button that copies it. */
export function snippets(experiment) {
  const code = snippetsOf(experiment, location.origin);
  const text = h("code", { class: "code" });
  const copied = h("span", { class: "muted", role: "status" });
  const tabs = Object.keys(code).map((language) => h("button", { type: "button", onClick: () => choose(language) }, language));
  const copy = h("button", { class: "button small", type: "button", onClick: put }, "Copy");
  const element = h(
    "div",
    { class: "snippets" },
    h("div", { class: "filters" }, h("div", { class: "tabs", role: "group", "aria-label": "Language" }, tabs), h("span", { class: "actions" }, copied, copy)),
    h("pre", { tabindex: "0", role: "group", "aria-label": "Code to paste" }, text),
    experiment.status === "draft" ? h("p", { class: "hint" }, "It is a draft: asks are refused until it is started.") : null,
  );

  function choose(language) {
    tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.textContent === language)));
    say(text, code[language]);
    say(copied, "");
  }

  async function put() {
    try {
      await navigator.clipboard.writeText(text.textContent);
      say(copied, "Copied");
    } catch {
      getSelection().selectAllChildren(text); // no clipboard here: it is ready for the reader's own hand
      say(copied, "Selected: copy it with the keyboard");
    }
  }
  choose("curl");
  return element;
}

export const showSnippets = (experiment) => shown("Ask and tell", h("p", {}, "Ask which arm to show, and tell what came of it."), snippets(experiment));

/** For an experiment that nobody has asked yet; hidden otherwise. */
export function firstSteps() {
  const element = h("section", { class: "card first-steps", "aria-labelledby": "first-steps-title", hidden: true });
  let made = "";
  element.show = (experiment, recommendation) => {
    element.hidden = recommendation.draws > 0 || !["draft", "running"].includes(experiment.status);
    const shape = JSON.stringify([experiment.key, experiment.sticky, experiment.reward, experiment.status]);
    if (element.hidden || shape === made) return;
    made = shape;
    replace(
      element,
      h("h2", { id: "first-steps-title" }, "Nobody has asked yet"),
      h("p", { class: "muted" }, "Your code asks which arm to show, and tells what came of it. This works as it stands:"),
      snippets(experiment),
    );
  };
  return element;
}
