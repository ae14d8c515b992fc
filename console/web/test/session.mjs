// What the tests of the console in Chromium share: SCRIPT URL [SHOTS] opens pages of a
// running demo, collects errors of their consoles, and prints what a failed one shows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

export const [base, shots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const patience = 120_000; // test machines are slow; every wait is for a condition
export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
export const errors = [];
let shown; // the page that was opened or shown last

export async function open(size = { width: 1280, height: 800 }, colorScheme = 'light') {
  const context = await browser.newContext({ viewport: size, colorScheme, acceptDownloads: true, bypassCSP: true });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  show(page);
  page.on('console', (m) => m.type() === 'error' && errors.push(`${m.text()} ${m.location().url}`));
  page.on('pageerror', (e) => errors.push(e.message));
  page.on('request', (r) => assert.equal(new URL(r.url()).host, new URL(base).host, `request to another host: ${r.url()}`));
  return page;
}
/** show notes the page that is tested, for messages of failures. */
export const show = (page) => (shown = page);
export const check = (what) => assert.deepEqual(errors.splice(0), [], `${what}: errors in the console`);

process.on('uncaughtException', async (e) => {
  const text = await shown?.locator('body').innerText({ timeout: 5000 }).catch(() => '');
  console.log(e, '\nerrors in the console:', errors, '\nat', shown?.url(), '\n' + text?.slice(0, 1800));
  process.exit(1);
});

/** accessible runs axe-core and fails on serious violations. */
export async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const bad = found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
  assert.deepEqual(bad.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 140)).join(' | ')}`), [], `${what}: axe-core`);
}

/**
 * saved clicks a save button and returns the content of the file. A page that is drawn anew, as
 * when its incident has just closed, may take the button from under a click: it is clicked again.
 */
export async function saved(where, format) {
  for (let clicks = 1; ; clicks++) {
    const download = where.page().waitForEvent('download', { timeout: 30_000 }).catch((e) => e);
    await where.getByRole('button', { name: format }).first().click();
    const file = await download;
    if (!(file instanceof Error)) return readFileSync(await file.path());
    if (clicks === 3) throw file;
  }
}
/** drawing saves as SVG and counts elements, which also checks that it is XML. */
export async function drawing(where, what, ...wanted) {
  const text = (await saved(where, 'SVG')).toString();
  const marks = await where.page().evaluate((t) => new DOMParser().parseFromString(t, 'image/svg+xml').querySelectorAll('svg > *').length, text);
  assert.ok(marks > 5, `${what} as SVG has ${marks} elements`);
  for (const w of wanted) assert.ok(text.includes(w), `${what} as SVG does not show ${w}`);
}
