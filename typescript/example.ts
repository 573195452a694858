// An experiment from its creation to its recommendation: `fetch`, and the types of bestarm.d.ts.
import type { components } from "./bestarm";

type Schemas = components["schemas"];
type CreateExperiment = Schemas["ExperimentIn"];

/** A refusal of the service: decide by `code`, quote `requestId` when you report one. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly code: string, readonly requestId: string | null, detail: string) {
    super(detail);
  }
}

export class Bestarm {
  constructor(private readonly url: string, private readonly key?: string) {}

  create(experiment: CreateExperiment): Promise<Schemas["ExperimentOut"]> {
    return this.send("POST", "/v1/experiments", experiment);
  }

  ask(experiment: string, unit: string): Promise<Schemas["AssignmentOut"]> {
    const body: Schemas["AskIn"] = { unit };
    return this.send("POST", `/v1/experiments/${experiment}/assignments`, body);
  }

  tell(experiment: string, assignment: string, reward: number): Promise<Schemas["AssignmentOut"]> {
    const body: Schemas["TellIn"] = { reward };
    return this.send("POST", `/v1/experiments/${experiment}/assignments/${assignment}/reward`, body);
  }

  look(experiment: string): Promise<Schemas["RecommendationOut"]> {
    return this.send("GET", `/v1/experiments/${experiment}/recommendation`);
  }

  private async send<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.key !== undefined) headers["Authorization"] = `Bearer ${this.key}`;
    const answer = await fetch(this.url + path, {
      method,
      headers,
      signal: AbortSignal.timeout(5_000),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) {
      const problem = (await answer.json()) as Schemas["Problem"];
      throw new Refusal(answer.status, problem.code, answer.headers.get("X-Request-Id"), problem.detail);
    }
    return (await answer.json()) as Answer;
  }
}

export async function run(url: string, key: string | undefined, experiment: string): Promise<void> {
  const service = new Bestarm(url, key);
  await service.create({
    key: experiment,
    arms: [
      { key: "grey", value: { color: "#888" } },
      { key: "green", value: { color: "#080" } },
    ],
    sticky: true,
  });
  for (let visitor = 0; visitor < 40; visitor++) {
    const shown = await service.ask(experiment, `user-${visitor}`);
    const hasBought = shown.arm === "green" ? visitor % 3 !== 0 : visitor % 10 === 0;
    // A concluded experiment has an arm and no id: nothing is recorded any more.
    if (shown.id !== null) await service.tell(experiment, shown.id, hasBought ? 1 : 0);
  }
  const seen = await service.look(experiment);
  console.log(seen.arm, seen.observations, seen.summary);
}
