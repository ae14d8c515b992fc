// Tests the console in Chromium against a running demo: browser.mjs URL [SHOTS].
// Prints measurements; the exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { fatTree, states } from './fabric.mjs';

const [, , base, shots] = process.argv;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const patience = 120_000; // test machines are slow; every wait is for a condition
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });

async function open(size = { width: 1280, height: 800 }, colorScheme = 'light') {
  const context = await browser.newContext({ viewport: size, colorScheme, acceptDownloads: true, bypassCSP: true });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  shown = page;
  page.on('console', (m) => m.type() === 'error' && errors.push(`${m.text()} ${m.location().url}`));
  page.on('pageerror', (e) => errors.push(e.message));
  page.on('request', (r) => assert.equal(new URL(r.url()).host, new URL(base).host, `request to another host: ${r.url()}`));
  return page;
}
let shown; // the current page
const errors = [];
const check = (what) => assert.deepEqual(errors.splice(0), [], `${what}: errors in the console`);

/** accessible runs axe-core and fails on serious violations. */
async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const bad = found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
  assert.deepEqual(bad.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 140)).join(' | ')}`), [], `${what}: axe-core`);
}

async function clickNode(page, name) {
  const canvas = page.locator('canvas[role=application]').first();
  const spot = await canvas.evaluate((c, n) => c.where(n), name);
  await canvas.click({ position: spot });
}

process.on('uncaughtException', async (e) => {
  const text = await shown?.locator('body').innerText({ timeout: 5000 }).catch(() => '');
  console.log(e, '\nerrors in the console:', errors, '\nat', shown?.url(), '\n' + text?.slice(0, 1800));
  process.exit(1);
});
/** saved clicks a save button and returns the content of the file. */
async function saved(where, format) {
  const [download] = await Promise.all([where.page().waitForEvent('download'), where.getByRole('button', { name: format }).first().click()]);
  return readFileSync(await download.path());
}
/** drawing saves as SVG and counts elements, which also checks that it is XML. */
async function drawing(where, what, ...wanted) {
  const text = (await saved(where, 'SVG')).toString();
  const marks = await where.page().evaluate((t) => new DOMParser().parseFromString(t, 'image/svg+xml').querySelectorAll('svg > *').length, text);
  assert.ok(marks > 5, `${what} as SVG has ${marks} elements`);
  for (const w of wanted) assert.ok(text.includes(w), `${what} as SVG does not show ${w}`);
}

/** handle acknowledges, assigns, comments and verifies the incident of the page, and copies a command of its runbook. */
async function handle() {
  const handling = page.getByRole('region', { name: 'Handling' });
  const timeline = page.getByRole('region', { name: 'Timeline', exact: true });
  await handling.getByText('not acknowledged').waitFor();
  await handling.getByRole('button', { name: 'Acknowledge' }).click();
  await handling.getByText(/^acknowledged by /).waitFor();
  await handling.getByRole('textbox', { name: 'Assignee' }).fill('alice');
  await handling.getByRole('button', { name: 'Assign' }).click();
  await handling.getByText(/assigned to alice/).waitFor();
  await handling.getByRole('button', { name: 'Mute alerts for' }).click();
  await handling.getByRole('button', { name: 'Unmute' }).click();
  await handling.getByRole('button', { name: 'Mute alerts for' }).waitFor();
  await handling.getByRole('textbox', { name: 'Comment' }).fill('looking at <b>h4</b>');
  await handling.getByRole('button', { name: 'Comment' }).click();
  const all = timeline.getByRole('button', { name: /^Show all/ });
  if (await all.isVisible()) await all.click();
  await timeline.getByText('looking at <b>h4</b>').waitFor(); // text, not markup
  await handling.getByRole('button', { name: 'Verify' }).click();
  await handling.getByRole('status').getByText(/^(recovered|persists|unknown)$/).waitFor();
  await handling.getByRole('button', { name: 'Verify' }).waitFor(); // it may be asked again

  const runbook = page.getByRole('region', { name: 'Runbook' });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const command = () => runbook.locator('pre').first().innerText();
  const sonic = await command();
  await runbook.getByRole('combobox', { name: 'System of the switches' }).selectOption('eos');
  await page.waitForFunction((was) => document.querySelector('section[aria-label=Runbook] pre')?.textContent !== was, sonic);
  await runbook.getByRole('button', { name: 'Copy the commands of step 1' }).click();
  await runbook.getByText('Copied').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await command(), 'the command that was copied');
  await accessible(page, 'handling');
  check('handling');
}

const page = await open();
await page.goto(base);
await page.getByText('live', { exact: true }).waitFor();

// A map that is opened shows the newest states before the first event.
const written = async () => (await fetch(base + 'api/v1/ports/now')).json();
while ((await written()).missing.length) await new Promise((done) => setTimeout(done, 50));
const first = await open();
let release;
const held = new Promise((done) => (release = done));
await first.route('**/api/v1/events', async (r) => {
  await held;
  await r.continue();
});
const values = async () => JSON.parse(await saved(first.locator('.stage'), 'JSON'));
await Promise.all([first.waitForResponse((r) => r.url().endsWith('/ports/now') && r.ok()), first.goto(base + '#/map')]);
await first.locator('canvas[role=application]').waitFor();
let painted = await values();
for (let i = 0; i < 100 && !painted.ports.length; i++) painted = await values(); // the response is read after its headers
assert.equal(painted.nodes.length, 0, 'the health of nodes comes with events');
assert.equal(painted.ports.length, 80, 'ports of all switches in the first drawing');
assert.ok(painted.ports.some((p) => p.load_bps > 0), 'load in the first drawing');
release();
await first.getByText('live', { exact: true }).waitFor();
assert.equal((await values()).nodes.length, 36, 'health after the first event');
check('first drawing');
await first.context().close();
shown = page;

// Every view, by its shortcut.
for (const [key, title] of [['i', 'Incidents'], ['l', 'Lab'], ['f', 'Flows'], ['p', 'Ports'], ['t', 'Traces'], ['d', 'Probes and debug marks'], ['c', 'Counters'], ['s', 'Slow flows'], ['h', 'Health'], ['m', 'Fabric map']]) {
  await page.keyboard.press('g');
  await page.keyboard.press(key);
  await page.getByRole('heading', { level: 1, name: title }).waitFor();
  await page.getByText('Loading…').first().waitFor({ state: 'detached' });
  await accessible(page, title);
  check(title);
}
await page.keyboard.press('?');
await page.getByRole('dialog', { name: 'Help' }).waitFor();
await page.keyboard.press('Escape');

// The map in all formats.
await drawing(page.locator('.stage'), 'the map', '>tor2<', '>spine0<');
assert.match((await saved(page.locator('.stage'), 'dot')).toString(), /^graph "fat-tree-4" \{[^]*"tor2" -- "[^]*\}\n$/);
assert.equal(JSON.parse(await saved(page.locator('.stage'), 'JSON')).nodes.length, 36);
assert.equal((await saved(page.locator('.stage'), 'PNG')).toString('latin1', 1, 4), 'PNG');

// A node by search, right after a dialog; its panel; one of its ports with charts.
await page.keyboard.press('/');
await page.getByRole('combobox', { name: 'Search' }).fill('tor2');
await page.keyboard.press('Enter');
await page.getByRole('complementary').getByRole('heading', { name: /^tor2/ }).waitFor();
await page.getByRole('complementary').getByRole('link', { name: 'Ethernet0', exact: true }).click();
await drawing(page.getByRole('figure', { name: /^Queue/ }), 'a chart', '>Queue<');
await accessible(page, 'panel of a port');
check('panels');

// An incast by clicking: selected, injected at a host on the map, detected correctly.
await page.goto(base + '#/lab');
await page.getByRole('button', { name: /^Incast/ }).click();
await clickNode(page, 'h4');
await page.getByRole('button', { name: 'Inject at h4' }).click();
const fault = page.getByRole('row', { name: /incast.*user/ }).first();
await fault.getByText('right').waitFor();
console.log('incast detected after', await fault.getByRole('cell').nth(8).innerText(), 'of fabric time');
await fault.getByRole('link').click();
// The first evidence may make an incident that is soon part of another: its page leads there.
const incast = page.getByRole('heading', { level: 1, name: /^incast at / });
const whole = page.getByRole('link', { name: /^incident i\d+$/ });
for (;;) {
  await incast.or(whole).first().waitFor();
  if (await incast.isVisible()) break;
  await whole.click();
}
check('incident');

// Its provenance graph, and the path of a culprit.
await page.getByRole('region', { name: /^Provenance graph, [1-9]/ }).waitFor();
await page.getByRole('region', { name: /^Timeline of the packet, [1-9]/ }).waitFor();
await page.getByText(/(was late|is in flight and late) by /).first().waitFor();
await accessible(page, 'incident');
const urls = { incident: page.url() };
if (shots) await pictures({ map: base + '#/map', ...urls, lab: base + '#/lab?kind=incast&node=h4' });
shown = page;
await handle();
await drawing(page.getByRole('region', { name: 'Provenance', exact: true }), 'a provenance graph');
assert.match((await saved(page.getByRole('region', { name: 'Provenance', exact: true }), 'dot')).toString(), /^digraph/);
const culprit = page.getByRole('region', { name: 'Culprits' }).getByRole('link', { name: /→ h4$/ }).first();
await culprit.click();
await page.getByRole('region', { name: 'Hops' }).getByRole('row').nth(2).waitFor();
await page.getByRole('heading', { level: 1, name: /→ h4/ }).waitFor();
await accessible(page, 'flow');
check('flow');
urls.flow = page.url();

// A trace and its capture.
await page.goto(base + '#/traces?last=1h&filter=trace.hops%20>%201');
await page.getByRole('row').nth(1).getByRole('link').first().click();
await page.getByRole('img', { name: /^Ladder of ([2-9]|\d\d)/ }).waitFor();
assert.equal((await saved(page.locator('main'), 'pcapng')).readUInt32LE(0), 0x0a0d0d0a, 'a capture begins with a section header');
await drawing(page.locator('main'), 'a ladder', 'TTL');
const headers = page.getByRole('region', { name: 'Headers and fields' });
await headers.getByText('IPv4').first().waitFor();
await headers.getByText('TTL').first().hover();
assert.equal(await page.locator('.byte.on').count(), 1, 'a TTL is one byte, which is marked');
await accessible(page, 'trace');
check('trace');
urls.trace = page.url();

// A heat map, and the view of a port.
await page.goto(base + '#/ports?last=1s');
await page.getByRole('list', { name: 'Ports' }).getByRole('link').first().waitFor();
await drawing(page.locator('main'), 'a heat map', '→');
await page.getByRole('list', { name: 'Ports' }).getByRole('link').first().click();
await page.getByRole('figure', { name: /^Load/ }).waitFor();
await accessible(page, 'port');
check('ports');
urls.port = page.url();

// A probe over a link and a mark on a host's packets, with their results.
await page.goto(base + '#/probes?link=leaf0:Ethernet8&host=h4');
await page.getByRole('button', { name: 'Send probes' }).click();
await page.getByRole('region', { name: 'Probes' }).getByText('done').first().waitFor();
await page.getByRole('button', { name: 'Set mark' }).click();
await page.getByRole('region', { name: 'Marks' }).getByRole('cell', { name: /^h4/ }).first().waitFor();
await accessible(page, 'probes');
check('probes');

// A counter: its filter, its name, its series.
await page.goto(base + '#/counters');
await page.getByRole('combobox', { name: 'Packet filter' }).fill('udp');
await page.keyboard.press('Escape');
await page.keyboard.press('Enter');
await page.getByRole('textbox', { name: 'Name' }).fill('rdma');
await page.getByRole('button', { name: 'Add counter', exact: true }).click();
await page.getByRole('link', { name: 'rdma' }).click();
await page.getByRole('figure', { name: /^Packets per/ }).waitFor();
await accessible(page, 'counter');
check('counters');
urls.counter = page.url();

// A report of an unknown flow is refused; a tenant shows what reports look like.
await page.goto(base + '#/slow-flows');
await page.getByRole('textbox', { name: 'Flow' }).fill('udp 10.0.0.2:9 > 10.1.0.2:4791');
await page.getByRole('button', { name: 'Diagnose' }).click();
await page.getByRole('alert').getByText('not a flow that a host sends').waitFor();
await accessible(page, 'slow flows');
assert.equal(errors.splice(0).filter((e) => e.includes('404')).length, 1, 'one report was refused');
await tenant();
check('slow flows');
if (shots) {
  const view = (name) => [name.split('?')[0], `${base}#/${name}`];
  await pictures({ ...urls, ...Object.fromEntries(['incidents', 'flows', 'ports?last=200ms', 'traces?all=1', 'probes', 'counters', 'slow-flows', 'health'].map(view)) });
}

// A frozen range lists the incidents of its time only.
await page.goto(base + '#/incidents?from=2020-01-01T00:00:00Z&to=2020-01-01T00:01:00Z');
await page.getByText('No incidents in this range').waitFor();
const known = (await (await fetch(base + 'api/v1/incidents?last=1h&severity=warning')).json()).items.at(-1);
await page.goto(`${base}#/incidents?from=${known.begin}&to=${known.updated}`);
await page.getByRole('row', { name: new RegExp(`${known.id}\\b`) }).waitFor();
check('frozen incidents');

// The past: the slider loads a state from the store.
await page.goto(base + '#/map');
const past = page.waitForResponse((r) => r.url().includes('/state?at=') && r.ok());
await page.getByRole('slider', { name: 'Time' }).focus();
await page.keyboard.press('Home');
await past;
assert.match(page.url(), /at=/);
check('replay');
await page.context().close();

// The dark theme has its own contrast.
const dark = await open(undefined, 'dark');
for (const view of ['#/map', '#/incidents', '#/lab', '#/health']) {
  await dark.goto(base + view);
  await dark.getByText('live', { exact: true }).waitFor();
  await accessible(dark, 'dark ' + view);
}
check('dark');
await dark.context().close();

await large();
await browser.close();

/** tenant checks that a tenant sees only the view of slow flows. */
async function tenant() {
  const theirs = await open();
  const flow = 'udp 10.0.0.2:9 > 10.1.0.2:4791';
  const verdicts = [{ anomaly: 'backpressure', root_cause: 'flows', confidence: 0.9, role: 'victim', your_culprits: [], your_victims: [flow], others_involved: true, advice: 'Your flows are not the cause. The operator sees the details.' }];
  await theirs.route('**/api/v1/topology', (r) => r.fulfill({ status: 403, json: { detail: 'a tenant may only report its own slow flows' } }));
  await theirs.route('**/api/v1/slow-flows', (r) => r.fulfill({ json: { items: [{ id: 'c2', flow, time: '2026-01-01T00:00:01Z', state: 'waiting', verdicts: [] }, { id: 'c1', flow, time: '2026-01-01T00:00:00Z', state: 'done', verdicts }] } }));
  await theirs.goto(base);
  await theirs.getByText('Your flows are not the cause').waitFor();
  assert.equal(await theirs.getByRole('navigation').getByRole('link').count(), 1, 'views of a tenant');
  await accessible(theirs, 'tenant');
  await theirs.context().close();
  assert.equal(errors.splice(0).filter((e) => e.includes('403')).length, 1, 'the fabric is not for tenants');
  shown = page;
}

/** large measures panning and zooming of a fat-tree with 1344 nodes, collapsed and expanded. */
async function large() {
  const topology = fatTree(16);
  const big = await open({ width: 1920, height: 1080 });
  await big.route('**/api/v1/topology', (r) => r.fulfill({ json: topology }));
  await big.route('**/api/v1/events', (r) => r.fulfill({ contentType: 'text/event-stream', body: states(topology) }));
  await big.goto(base + '#/map');
  const canvas = big.locator('canvas[role=application]');
  await canvas.waitFor();
  for (const folded of [true, false]) {
    if (!folded) await big.getByRole('button', { name: 'Collapse pods' }).click();
    await big.waitForTimeout(300);
    if (shots) await big.screenshot({ path: `${shots}/k16-${folded ? 'folded' : 'whole'}.png` });
    for (const [what, move] of [['zoomed', (i) => big.mouse.wheel(0, i % 20 < 10 ? -60 : 60)], ['moved', (i) => big.mouse.move(700 + 8 * Math.abs((i % 60) - 30), 400 + 4 * Math.abs((i % 40) - 20))]]) {
      await big.mouse.move(700, 400);
      if (what === 'moved') await big.mouse.down();
      let done = false;
      const frames = canvas.evaluate(gaps).finally(() => (done = true));
      for (let i = 0; !done; i++) await move(i);
      if (what === 'moved') await big.mouse.up();
      const { gap50, gap95, draw50, draw95 } = await frames;
      const ms = (x) => x.toFixed(1) + ' ms';
      console.log(`k=16 ${folded ? 'collapsed' : 'expanded'}, ${what}: frame ${ms(gap50)} (95%: ${ms(gap95)}), drawing ${ms(draw50)} (95%: ${ms(draw95)})`);
      assert.ok(draw50 > 0, `the map was not drawn while it was ${what}`);
    }
  }
  check('k=16');
  await big.context().close();
}

/** gaps measures 30 frames that show the map at a new position. */
async function gaps(canvas) {
  const gap = [];
  const draw = [];
  let last = await new Promise(requestAnimationFrame);
  let was = canvas.where('spine0');
  while (gap.length < 30) {
    const now = await new Promise(requestAnimationFrame);
    const is = canvas.where('spine0');
    if (is.x !== was.x || is.y !== was.y) {
      gap.push(now - last);
      draw.push(Number(canvas.dataset.drawMs));
    }
    [last, was] = [now, is];
  }
  const at = (list, share) => list.sort((a, b) => a - b)[Math.floor(list.length * share)];
  return { gap50: at(gap, 0.5), gap95: at(gap, 0.95), draw50: at(draw, 0.5), draw95: at(draw, 0.95) };
}

/** pictures takes the screenshots of the documentation. */
async function pictures(urls) {
  for (const [name, size, colour] of [['', { width: 1280, height: 800 }, 'light'], ['-wide', { width: 1920, height: 1080 }, 'dark']]) {
    const p = await open(size, colour);
    for (const [view, to] of Object.entries(urls)) {
      await p.goto(to);
      await p.getByText('live', { exact: true }).waitFor();
      await p.waitForTimeout(2500); // until states and responses arrive
      await p.screenshot({ path: `${shots}/${view}${name}.png` });
    }
    await p.context().close();
  }
}
