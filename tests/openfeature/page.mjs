// The stock web provider in a page: evaluates every flag that opted in, and says what it got.
import { OpenFeature } from '@openfeature/web-sdk';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';

const { url, key, unit, poll, changes } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const answers = [];
const watched = async (...request) => {
  const answer = await fetch(...request);
  answers.push(answer.status);
  return answer;
};
try {
  await OpenFeature.setContext({ targetingKey: unit });
  const provider = new OFREPWebProvider({
    baseUrl: url,
    pollInterval: Number(poll),
    changeDetection: changes,
    fetchImplementation: watched,
    headers: [['Authorization', `Bearer ${key}`]],
  });
  await OpenFeature.setProviderAndWait(provider);
} catch (failure) {
  document.title = `failed: ${failure.message}`;
}
const client = OpenFeature.getClient();
window.evaluated = () => ({
  answers,
  flag: client.getBooleanDetails('flag', false),
  color: client.getStringDetails('color', 'grey'),
  limit: client.getNumberDetails('limit', 7),
  rate: client.getNumberDetails('rate', 0.5),
  layout: client.getObjectDetails('layout', {}),
  sizes: client.getObjectDetails('sizes', []),
  heard: client.getStringDetails('heard', 'none'),
  quiet: client.getBooleanDetails('quiet', false),
  mismatch: client.getStringDetails('limit', 'none'),
});
document.body.textContent = 'ready';
