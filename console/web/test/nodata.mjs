// Tests what the console of a service shows before the first report: nodata.mjs URL.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const [, , base] = process.argv;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000); // test machines are slow; every wait is for a condition
  const errors = [];
  page.on('console', (m) => m.type() === 'error' && errors.push(m.text()));
  page.on('pageerror', (e) => errors.push(e.message));
  const health = await (await fetch(base + 'api/v1/health')).json();
  for (const view of ['map', 'health']) {
    await page.goto(base + '#/' + view);
    const panel = page.getByRole('region', { name: 'No data' });
    await panel.getByText('No switch has reported yet').waitFor();
    for (const s of health.no_data.send_to) await panel.getByRole('cell', { name: s.address }).waitFor();
    await panel.getByText(health.no_data.try[0].command).waitFor();
    await page.locator('header').getByText('no data', { exact: true }).first().waitFor();
    assert.equal(await page.getByText('live', { exact: true }).count(), 0, `${view} says that there is live data`);
  }
  assert.deepEqual(errors, [], 'errors in the console');
} finally {
  await browser.close();
}
