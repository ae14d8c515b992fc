// Tests what the console of a service shows before the first report, and at a wrong
// token: nodata.mjs URL TOKEN.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const [, , base, token] = process.argv;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000); // test machines are slow; every wait is for a condition
  const errors = [];
  page.on('console', (m) => m.type() === 'error' && errors.push(m.text()));
  page.on('pageerror', (e) => errors.push(e.message));
  await page.goto(base);
  await page.getByRole('textbox', { name: 'Token' }).fill('not the token at all');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('The token was rejected').waitFor();
  assert.equal((await page.locator('.clock').innerText()).trim().replace(/\s*UTC$/, ''), '', 'no clock without a token');
  await page.getByRole('textbox', { name: 'Token' }).fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('region', { name: 'No data' }).waitFor();
  assert.ok(errors.splice(0).every((e) => e.includes('401')), 'errors in the console besides refused requests');
  const health = await (await fetch(base + 'api/v1/health', { headers: { Authorization: `Bearer ${token}` } })).json();
  for (const view of ['map', 'health']) {
    await page.goto(base + '#/' + view);
    const panel = page.getByRole('region', { name: 'No data' });
    await panel.getByText('No switch has reported yet').waitFor();
    for (const s of health.no_data.send_to) await panel.getByRole('cell', { name: s.address }).waitFor();
    await panel.getByText(health.no_data.try[0].command).waitFor();
    await page.locator('header').getByText('no data', { exact: true }).first().waitFor();
    assert.equal(await page.getByText('live', { exact: true }).count(), 0, `${view} says that there is live data`);
  }
  await page.goto(base + '#/lab'); // nothing is asked for that a service does not have
  await page.getByText('Fault injection works in the demo only').waitFor();
  assert.deepEqual(errors, [], 'errors in the console');
} finally {
  await browser.close();
}
