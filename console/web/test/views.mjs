// Tests every view of the console in Chromium, by keyboard, in both themes, as a tenant, and
// the frame times of a large fabric, against a running demo: views.mjs URL [SHOTS]. Prints
// measurements; the exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { fatTree, states } from './fabric.mjs';
import { accessible, base, browser, check, drawing, errors, open, saved, shots, show } from './session.mjs';

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
show(page);

// A browser whose network changes aborts its requests: a view and its answers come nevertheless.
const moving = await open();
await moving.goto(base + '#/map');
await moving.getByText('live', { exact: true }).waitFor();
const aborted = new Set();
await moving.route(/assets\/Jobs-|api\/v1\/jobs/, (r) => {
  const path = new URL(r.request().url()).pathname;
  return aborted.size === aborted.add(path).size ? r.continue() : r.abort('connectionaborted');
});
await moving.goto(base + '#/jobs');
await moving.getByRole('region', { name: 'Jobs of the range' }).waitFor();
assert.equal(aborted.size, 2, `aborted once: ${[...aborted]}`);
assert.equal(errors.splice(0).length, 2, 'an error in the console of each');
await moving.context().close();
show(page);

// Every view, by its shortcut.
for (const [key, title] of [['i', 'Incidents'], ['l', 'Lab'], ['f', 'Flows'], ['j', 'Jobs'], ['p', 'Ports'], ['t', 'Traces'], ['d', 'Probes and debug marks'], ['c', 'Counters'], ['s', 'Slow flows'], ['o', 'Sources'], ['h', 'Health'], ['m', 'Fabric map']]) {
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

// Sources: every switch with its kinds of reports, and rates as soon as there are two answers.
await page.goto(base + '#/sources');
await page.getByRole('row').filter({ hasText: /^\s*tor2\s*flowset.*\/s.*(ago|just now)\s*ok\s*$/ }).waitFor();
const sources = JSON.parse(await saved(page.locator('.view'), 'JSON')).items;
assert.equal(new Set(sources.map((r) => r.switch)).size, 20, 'switches that report');
check('sources');

// A report of an unknown flow is refused; a tenant shows what reports look like.
await page.goto(base + '#/slow-flows');
await page.getByRole('textbox', { name: 'Flow' }).fill('udp 10.0.0.2:9 > 10.1.0.2:4791');
await page.getByRole('button', { name: 'Diagnose' }).click();
await page.getByRole('alert').getByText('not a flow that a host sends').waitFor();
await accessible(page, 'slow flows');
assert.equal(errors.splice(0).filter((e) => e.includes('404')).length, 1, 'one report was refused');
await tenant();
check('slow flows');
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
  show(page);
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
