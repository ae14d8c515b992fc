// Tests in Chromium what an operator must not be misled by, against a running demo:
// glance.mjs URL. The exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { fatTree, states } from './fabric.mjs';
import { base, browser, check, errors, open, saved } from './session.mjs';

// Drops that switches count are grey ticks; only the port of an open incident has a red
// cross, and only its node is red.
const topology = fatTree(4);
const dropping = new Set(['leaf0:3', 'tor1:1', 'spine0:1']);
const stream = states(topology).replace(/"lost_packets":\d+/g, '"lost_packets":0').replace(/"node":"(\w+)","port":(\d+),([^}]*)"lost_packets":0/g, (all, node, port) => (dropping.has(`${node}:${port}`) ? all.replace(/"lost_packets":0$/, '"lost_packets":9') : all));
const incident = { id: 'i1', state: 'open', severity: 'critical', cause: 'loss', location: 'leaf0:Ethernet8', summary: '9 packets lost', begin: '2026-01-01T00:00:00Z', found: '2026-01-01T00:00:00Z', updated: '2026-01-01T00:00:00Z', nodes: ['leaf0', 'tor1'], flows: [], jobs: [], related: [], sources: [] };
const part = { ...incident, id: 'i2', state: 'closed', cause: 'stall', end: incident.updated, merged_into: 'i1' };
const path = [{ node: 'leaf1', port: 1, interface: 'Ethernet0', peer: 'tor0' }, { node: 'tor0', port: 1, interface: 'Ethernet0', peer: 'h0' }];
const none = Object.fromEntries(['timeline', 'evidence', 'missing', 'culprits', 'victims', 'jobs', 'loop', 'links', 'actions', 'diagnoses', 'traces', 'probes', 'parts', 'related', 'operator_actions', 'runbook'].map((k) => [k, []]));
const detail = { ...incident, ...none, cause: 'storm', location: 'h0', sentence: 'PFC storm', confidence: 0.9, pfc_path: path, remedy: '', parts: [part.id] };
const faults = Array.from({ length: 40 }, (_, i) => ({ id: `f${i}`, request: { kind: 'storm', node: 'h15' }, by: 'user', state: 'ended', begin: incident.begin, verdict: 'right', want: 'storm', got: 'storm' }));
/** aboutIncident checks how an incident with a merged one is shown, and that the Lab's map keeps its height below a long list. */
async function aboutIncident(page) {
  assert.equal(await page.getByRole('link', { name: 'Details of incident i1' }).innerText(), 'details ›');
  await page.goto(base + '#/incidents');
  await page.locator('tbody tr').nth(1).getByText('↳ part of i1').waitFor();
  await page.goto(base + '#/incidents/i1');
  await page.getByText('Merged into it: i2').waitFor();
  await page.getByText('from the root: h0 ⇒ pauses ⇒ tor0 Ethernet0 → h0 ⇒ pauses ⇒ leaf1 Ethernet0 → tor0').waitFor();
  await page.goto(base + '#/lab');
  await page.getByText('40/40 detected correctly').waitFor();
  const { height } = await page.locator('canvas[role=application]').boundingBox();
  assert.ok(height >= 400, `the map of the Lab has ${height} pixels above 40 faults`);
}
for (const [items, crosses, ticks] of [[[], 0, 3], [[part, incident], 1, 2]]) {
  const map = await open();
  await map.route('**/api/v1/topology', (r) => r.fulfill({ json: topology }));
  await map.route('**/api/v1/ports/now', (r) => r.fulfill({ json: { ports: [], missing: [] } }));
  await map.route('**/api/v1/incidents?*', (r) => r.fulfill({ json: { items } }));
  await map.route('**/api/v1/events', (r) => r.fulfill({ contentType: 'text/event-stream', body: stream }));
  await map.route('**/api/v1/incidents/i1', (r) => r.fulfill({ json: detail }));
  await map.route('**/api/v1/faults', (r) => r.fulfill({ json: { items: faults } }));
  await map.goto(base + '#/map');
  await map.locator('canvas[role=application]').waitFor();
  const colour = (name) => map.evaluate((n) => getComputedStyle(document.documentElement).getPropertyValue(n).trim(), name);
  const [red, grey] = [await colour('--critical'), await colour('--dim')];
  const marks = async () => {
    const svg = (await saved(map.locator('.stage'), 'SVG')).toString();
    const count = (strokes, c) => [...svg.matchAll(/<path d="([^"]*)" fill="none" stroke="([^"]*)"/g)].filter(([, d, s]) => s === c && new RegExp(`^(M[-\\d. ]+L[-\\d. ]+){${strokes}}$`).test(d)).length;
    return { crosses: count(2, red), ticks: count(1, grey) };
  };
  let seen = await marks();
  for (let i = 0; i < 100 && seen.crosses + seen.ticks < 3; i++) seen = await marks(); // until the event is read
  assert.deepEqual(seen, { crosses, ticks }, `marks of three ports that lose packets, ${items.length} incidents`);
  if (items.length) await aboutIncident(map);
  await map.context().close();
  errors.splice(0); // the stream of events ends
}

const page = await open();
await page.goto(base);
await page.getByText('live', { exact: true }).waitFor();

// The clock has a date and a zone, and the pace has one digit.
await page.waitForFunction(() => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\sUTC$/.test(document.querySelector('.clock').innerText));
assert.match(await page.locator('.pace').innerText(), /^(real time|\d0*× slower|\d\.?\d?0*× faster)$/);

// The time axis and the scale of the heat map stay visible below its last port.
await page.goto(base + '#/ports?last=1h');
await page.locator('.heat canvas').waitFor();
await page.locator('main').evaluate((m) => m.scrollTo(0, m.scrollHeight));
for (const part of ['.axis', '.scale']) {
  const box = await page.locator('.heat ' + part).boundingBox();
  assert.ok(box.y >= 40 && box.y + box.height <= 800, `${part} of the heat map is at ${box.y} after scrolling`);
}
check('ports');

// One Esc closes the search, whatever is typed.
await page.keyboard.press('/');
await page.getByRole('combobox', { name: 'Search' }).fill('tor2');
await page.keyboard.press('Escape');
await page.getByRole('dialog', { name: 'Search' }).waitFor({ state: 'detached' });
check('search');

// A filter that is refused has one message, and no rows of the filter before.
await page.goto(base + '#/flows?last=1h');
await page.locator('tbody tr').first().waitFor();
const filter = page.getByRole('combobox', { name: /filter/i }).first();
await filter.fill('ip.src == h99');
await page.keyboard.press('Escape');
await page.keyboard.press('Enter');
await page.getByRole('alert').getByText('no host h99').waitFor();
assert.equal(await page.getByText('no host h99').count(), 1, 'messages about the filter');
assert.equal(await page.locator('tbody tr').count(), 0, 'rows below a refused filter');
errors.splice(0); // 422

// A name that a counter cannot have says what it can.
await page.goto(base + '#/counters?filter=udp');
const name = page.getByRole('textbox', { name: 'Name' });
await name.fill('rdma h0');
assert.ok(!(await name.evaluate((i) => i.checkValidity())), 'a name with a space is refused');
assert.match(await name.getAttribute('title'), /Letters, digits/);

// A fault of a chosen duration; the verdict of a flow by one click.
await page.goto(base + '#/lab?kind=storm&node=h4');
await page.route('**/api/v1/faults', (r) => (r.request().method() === 'POST' ? r.fulfill({ status: 422, json: { detail: 'not now' } }) : r.continue())); // other tests share the demo
await page.getByRole('combobox', { name: 'Duration of the fault' }).selectOption('100 ms');
const [sent] = await Promise.all([page.waitForRequest((r) => r.method() === 'POST' && r.url().endsWith('/faults')), page.getByRole('button', { name: 'Inject at h4' }).click()]);
assert.equal(sent.postDataJSON().duration_ms, 100);
await page.getByRole('alert').getByText('not now').waitFor();
errors.splice(0); // 422
const flow = (await (await fetch(base + 'api/v1/flows?last=1h&sort=packets&limit=1&filter=udp.dstport%20%3D%3D%204791')).json()).items[0].flow;
await page.route('**/api/v1/slow-flows', (r) => (r.request().method() === 'POST' ? r.fulfill({ status: 202, json: { id: 'c1' } }) : r.continue()));
await page.goto(base + '#/flows/' + encodeURIComponent(flow) + '?last=1h');
const [asked] = await Promise.all([page.waitForRequest((r) => r.method() === 'POST' && r.url().endsWith('/slow-flows')), page.getByRole('button', { name: 'Diagnose' }).click()]);
assert.equal(asked.postDataJSON().flow, flow);
await page.getByRole('heading', { level: 1, name: 'Slow flows' }).waitFor();
check('actions');

await browser.close();
