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
/** aboutHealth checks that every count of a stage is inside its panel, and that no stage is alone in the last row. */
async function aboutHealth(page) {
  const loss = (reason, total) => ({ reason, total, per_second: 0, expected: false, about: reason });
  const stage = (i) => ({ name: `s${i}`, title: `Stage ${i}`, state: 'ok', unit: 'reports', in_per_second: 1, in_total: 1, out_total: 1, queued: 0, queue_limit: 0, losses: [loss('unknown reporter of diagnosis-request', i === 5 ? 7 : 0), loss('malformed', 0)] });
  const health = { state: 'ok', uptime_ms: 1, alerts: [], stages: [1, 2, 3, 4, 5, 6].map(stage), store: { kind: 'duckdb', bytes: 1, max_bytes: 0, expired_total: 0 } };
  await page.route('**/api/v1/health', (r) => r.fulfill({ json: health }));
  for (const width of [1440, 1280, 900]) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(base + '#/map');
    await page.reload();
    await page.goto(base + '#/health');
    await page.getByText('2 reasons without a loss').first().waitFor();
    const { rows, outside } = await page.locator('ol.line').evaluate((list) => {
      const stages = [...list.querySelectorAll(':scope > li')];
      const tops = stages.map((s) => Math.round(s.getBoundingClientRect().top));
      return {
        rows: [...new Set(tops)].map((top) => tops.filter((t) => t === top).length),
        outside: stages.flatMap((s) => [...s.querySelectorAll('dt, dd')].filter((d) => d.getBoundingClientRect().right > s.getBoundingClientRect().right).map((d) => d.textContent)),
      };
    });
    assert.ok(rows.at(-1) > 1 || rows[0] === 1, `stages of the rows of Health at ${width}: ${rows}`);
    assert.deepEqual(outside, [], `counts outside of their panel at ${width}`);
    assert.equal(await page.locator('.bad').innerText(), '▲ 7');
  }
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
  if (items.length) {
    await aboutIncident(map);
    await aboutHealth(map);
  }
  await map.context().close();
  errors.splice(0); // the stream of events ends
}

const page = await open();
await page.goto(base);
await page.getByText('live', { exact: true }).waitFor();

// The clock has a date and a zone, and the pace has one digit.
await page.waitForFunction(() => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\sUTC$/.test(document.querySelector('.clock').innerText));
assert.match(await page.locator('.pace').innerText(), /^(real time|\d0*× slower|\d\.?\d?0*× faster)$/);

// A port that the fabric does not have: what there is instead.
await page.goto(base + '#/ports/tor0:99');
await page.getByRole('alert').getByText('This fabric has no such port').waitFor();

// The flow to probe and the flow to mark are two; the link of a flow's page fills both.
await page.goto(base + '#/probes?flow=udp+10.0.0.2:1+%3E+10.1.0.2:2');
const toMark = page.getByRole('region', { name: 'Set a mark' }).getByRole('textbox', { name: 'Flow' });
assert.equal(await page.getByRole('region', { name: 'Start a probe' }).getByRole('textbox', { name: 'Flow' }).inputValue(), 'udp 10.0.0.2:1 > 10.1.0.2:2');
assert.equal(await toMark.inputValue(), '');
check('probes');

// The time axis and the scale of the heat map stay visible below its last port.
await page.goto(base + '#/ports?last=1h');
await page.locator('.heat canvas').waitFor();
await page.locator('main').evaluate((m) => m.scrollTo(0, m.scrollHeight));
for (const part of ['.axis', '.scale']) {
  const box = await page.locator('.heat ' + part).boundingBox();
  assert.ok(box.y >= 40 && box.y + box.height <= 800, `${part} of the heat map is at ${box.y} after scrolling`);
}
check('ports');

// A colour of the heat map means the same whatever else is on it: a quiet fabric looks quiet.
const colourBeside = async (other) => {
  const fill = (r) => r.fetch().then(async (a) => {
    const map = await a.json();
    return r.fulfill({ json: { ...map, max: other, values: map.values.map((row, j) => row.map((_, i) => (i + j ? other : 4000))) } });
  });
  await page.route('**/ports/heatmap?*', fill);
  await page.goto(base + `#/ports?last=1h&metric=queue_bytes&beside=${other}`);
  await page.reload();
  await page.locator('.heat canvas').waitFor();
  const svg = (await saved(page.locator('main'), 'SVG')).toString();
  await page.unroute('**/ports/heatmap?*', fill);
  return svg.match(/<rect [^>]*fill="([^"]*)"/)[1];
};
const [quiet, busy] = [await colourBeside(0), await colourBeside(2_000_000)];
assert.equal(quiet, busy, 'the colour of 4 kB on a quiet and on a busy heat map');
check('heat map');

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
