// A sticky experiment through OpenFeature's official provider for Node: flags show the arms, one `fetch` tells the rewards.
//
// The packages are those of tests/openfeature (`make node-packages`); in a project of your own:
// npm install @openfeature/server-sdk @openfeature/ofrep-provider @openfeature/core @openfeature/ofrep-core
import { createRequire } from 'node:module';

const installed = createRequire(new URL('../../tests/openfeature/package.json', import.meta.url));
const { OpenFeature } = installed('@openfeature/server-sdk');
const { OFREPProvider } = installed('@openfeature/ofrep-provider');

const url = process.env.BESTARM_URL ?? 'http://127.0.0.1:8000';
const experiment = process.env.BESTARM_EXPERIMENT ?? `node-${Date.now()}`;
const headers = { 'Content-Type': 'application/json' };
if (process.env.BESTARM_KEY) headers.Authorization = `Bearer ${process.env.BESTARM_KEY}`;

async function send(path, body) {
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
}

// Once, at deployment; a product would do it in the dashboard.
await send('/v1/experiments', {
  key: experiment,
  sticky: true,
  arms: [{ key: 'grey', value: '#888' }, { key: 'green', value: '#080' }],
});

await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: url, headers: Object.entries(headers), timeoutMs: 2000 }));
const flags = OpenFeature.getClient();

let shown = 0;
for (let number = 0; number < 40; number++) {
  const visitor = { targetingKey: `visitor-${number}` };
  const button = await flags.getStringDetails(experiment, '#888', visitor);
  // A default is no draw: there is no assignment, and nothing to be told.
  if (button.flagMetadata.assignmentId === undefined) continue;
  shown += 1;
  const again = await flags.getStringValue(experiment, '#888', visitor);
  if (again !== button.value) throw new Error('The experiment is sticky: a visitor sees one button.');
  const hasBought = button.variant === 'green' ? number % 3 !== 0 : number % 10 === 0;
  await send(`/v1/experiments/${experiment}/units/${visitor.targetingKey}/reward`, { reward: hasBought ? 1 : 0 });
}

const unknown = await flags.getStringDetails(`${experiment}-not`, '#888', { targetingKey: 'visitor-1' });
console.log(JSON.stringify({ experiment, shown, unknown: [unknown.value, unknown.errorCode] }));
await OpenFeature.close();
