// Flags through the stock server provider: reads what to evaluate as JSON, writes what came of it.
import { readFileSync } from 'node:fs';
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';

const { url, key, wanted } = JSON.parse(readFileSync(0, 'utf8'));
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: url, headers: [['Authorization', `Bearer ${key}`]] }));
const client = OpenFeature.getClient();
const details = {
  boolean: client.getBooleanDetails,
  string: client.getStringDetails,
  number: client.getNumberDetails,
  object: client.getObjectDetails,
};
const found = [];
for (const { flag, type, otherwise, unit } of wanted) {
  found.push(await details[type].call(client, flag, otherwise, unit === null ? {} : { targetingKey: unit }));
}
console.log(JSON.stringify(found));
