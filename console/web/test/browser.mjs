// The page in a real browser against a running demo: browser.mjs URL [SHOTS].
// Prints what it measures; the exit code is 1 when something is not as it should.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { fatTree, states } from './fabric.mjs';

const [, , base, shots] = process.argv;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const patience = 120_000; // machines that test are slow; every wait is for a condition
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });

async function open(size = { width: 1280, height: 800 }, colorScheme = 'light') {
  const context = await browser.newContext({ viewport: size, colorScheme, acceptDownloads: true, bypassCSP: true });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  shown = page;
  page.on('console', (m) => m.type() === 'error' && errors.push(`${m.text()} ${m.location().url}`));
  page.on('pageerror', (e) => errors.push(e.message));
  page.on('request', (r) => assert.equal(new URL(r.url()).host, new URL(base).host, `request to elsewhere: ${r.url()}`));
  return page;
}
let shown; // the page that is looked at
const errors = [];
const check = (what) => assert.deepEqual(errors.splice(0), [], `${what}: errors in the console`);

/** accessible runs axe-core and wants nothing serious. */
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
const page = await open();
await page.goto(base);
await page.getByText('live', { exact: true }).waitFor();

// Every view, by its keys.
for (const [key, title] of [['i', 'Incidents'], ['l', 'Lab'], ['f', 'Flows'], ['p', 'Ports'], ['t', 'Traces'], ['d', 'Probe and debug'], ['h', 'Health'], ['m', 'Fabric map']]) {
  await page.keyboard.press('g');
  await page.keyboard.press(key);
  await page.getByRole('heading', { level: 1, name: title }).waitFor();
  await page.getByText('Asking the controller').first().waitFor({ state: 'detached' });
  await accessible(page, title);
  check(title);
}
await page.keyboard.press('?');
await page.getByRole('dialog', { name: 'Help' }).waitFor();
await page.keyboard.press('Escape');

// A node by search, at once after a dialog, its panel, a port of it with its series.
await page.keyboard.press('/');
await page.getByRole('combobox', { name: 'Search' }).fill('tor2');
await page.keyboard.press('Enter');
await page.getByRole('complementary').getByRole('heading', { name: /^tor2/ }).waitFor();
await page.getByRole('complementary').getByRole('link', { name: '1', exact: true }).click();
await page.getByRole('figure', { name: /^Queue/ }).waitFor();
await accessible(page, 'panel of a port');
check('panels');

// An incast by clicking: chosen, put on a host of the map, found, named right.
await page.goto(base + '#/lab');
await page.getByRole('button', { name: /^Incast/ }).click();
await clickNode(page, 'h4');
await page.getByRole('button', { name: 'Break h4' }).click();
const fault = page.getByRole('row', { name: /incast.*user/ }).first();
await fault.getByText('right').waitFor();
console.log('incast found after', await fault.getByRole('cell').nth(8).innerText(), 'of the fabric');
await fault.getByRole('link').click();
await page.getByRole('heading', { level: 1, name: /^incast at / }).waitFor();
check('incident');

// Its graph, and a culprit followed to its way.
await page.getByRole('region', { name: /^Provenance graph, [1-9]/ }).waitFor();
await accessible(page, 'incident');
if (shots) await pictures(page.url());
const culprit = page.getByRole('region', { name: 'Culprits' }).getByRole('link', { name: /→ h4$/ }).first();
await culprit.click();
await page.getByRole('region', { name: 'Hops' }).getByRole('row').nth(2).waitFor();
await page.getByRole('heading', { level: 1, name: /→ h4/ }).waitFor();
await accessible(page, 'flow');
check('flow');

// A trace and its capture.
await page.goto(base + '#/traces?last=1h&filter=trace.hops%20>%201');
await page.getByRole('row').nth(1).getByRole('link').first().click();
await page.getByRole('img', { name: /^Ladder of ([2-9]|\d\d)/ }).waitFor();
const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'pcapng' }).click()]);
const file = readFileSync(await download.path());
assert.equal(file.readUInt32LE(0), 0x0a0d0d0a, 'a capture begins with a section header');
await accessible(page, 'trace');
check('trace');

// The past: the slider asks the store.
await page.goto(base + '#/map');
const past = page.waitForResponse((r) => r.url().includes('/state?at=') && r.ok());
await page.getByRole('slider', { name: 'Time' }).focus();
await page.keyboard.press('Home');
await past;
assert.match(page.url(), /at=/);
check('replay');
await page.context().close();

// Dark colours have contrast of their own.
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

/** large measures how a fat-tree of 1344 nodes moves, folded and not. */
async function large() {
  const topology = fatTree(16);
  const big = await open({ width: 1920, height: 1080 });
  await big.route('**/api/v1/topology', (r) => r.fulfill({ json: topology }));
  await big.route('**/api/v1/events', (r) => r.fulfill({ contentType: 'text/event-stream', body: states(topology) }));
  await big.goto(base + '#/map');
  const canvas = big.locator('canvas[role=application]');
  await canvas.waitFor();
  for (const folded of [true, false]) {
    if (!folded) await big.getByRole('button', { name: 'Fold pods' }).click();
    await big.waitForTimeout(300);
    if (shots) await big.screenshot({ path: `${shots}/k16-${folded ? 'folded' : 'whole'}.png` });
    const box = await canvas.boundingBox();
    const frames = await canvas.evaluate(async (c, at) => {
      const gaps = [];
      const draws = [];
      let last = 0;
      for (let i = 0; i < 60; i++) {
        c.dispatchEvent(new WheelEvent('wheel', { deltaY: i % 20 < 10 ? -60 : 60, clientX: at.x + 600, clientY: at.y + 300, cancelable: true }));
        const now = await new Promise(requestAnimationFrame);
        if (last) gaps.push(now - last);
        last = now;
        draws.push(Number(c.dataset.drawMs));
      }
      const at50 = (list) => list.sort((a, b) => a - b)[list.length >> 1];
      const at95 = (list) => list.sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
      return { gap50: at50(gaps), gap95: at95(gaps), draw50: at50(draws), draw95: at95(draws) };
    }, box);
    const say = (x) => x.toFixed(1) + ' ms';
    console.log(`k=16 ${folded ? 'folded' : 'whole'}: frame ${say(frames.gap50)} (95%: ${say(frames.gap95)}), drawing ${say(frames.draw50)} (95%: ${say(frames.draw95)})`);
    assert.ok(frames.draw50 > 0, 'the map was drawn while it moved');
  }
  check('k=16');
  await big.context().close();
}

/** pictures keeps what the documentation shows. */
async function pictures(incident) {
  for (const [name, size, colour] of [['', { width: 1280, height: 800 }, 'light'], ['-wide', { width: 1920, height: 1080 }, 'dark']]) {
    const p = await open(size, colour);
    for (const [view, to] of [['map', base + '#/map'], ['incident', incident], ['lab', base + '#/lab?kind=incast&node=h4'], ['flows', base + '#/flows'], ['ports', base + '#/ports'], ['traces', base + '#/traces'], ['probes', base + '#/probes'], ['health', base + '#/health']]) {
      await p.goto(to);
      await p.waitForTimeout(2500);
      await p.screenshot({ path: `${shots}/${view}${name}.png` });
    }
    await p.context().close();
  }
}
