// Tests the page that weft run writes, in Chromium: report.mjs FILE-URL. The verdict and
// the diagnoses come first, and every column of the expectations is visible.
import assert from 'node:assert/strict';
import { base, browser, check, open } from './session.mjs';

for (const [width, height] of [[1440, 900], [1280, 720], [390, 844]]) {
  const page = await open({ width, height });
  await page.goto(base);
  const heads = await page.getByRole('heading').allInnerTexts();
  assert.deepEqual(heads.slice(1, 3), ['Diagnoses', 'Expectations'], `first sections at ${width}`);
  const box = await page.getByText(/^(PASS|FAIL|FAULT)/).first().boundingBox();
  assert.ok(box.y + box.height < height, `the verdict is at ${box.y} of ${height}`);
  const table = page.locator('section', { has: page.getByRole('heading', { name: 'Expectations' }) }).getByRole('table');
  for (const name of ['verdict', 'figure', 'want', 'got']) {
    const { x, width: w } = await table.getByRole('columnheader', { name, exact: true }).boundingBox();
    assert.ok(x >= 0 && x + w <= width, `column ${name} of the expectations is from ${x} to ${x + w} at ${width}`);
  }
  const seen = await table.evaluate((t) => [...t.querySelectorAll('td')].filter((d) => {
    const { left, right, top, bottom } = d.getBoundingClientRect();
    d.scrollIntoView({ block: 'center' });
    const now = d.getBoundingClientRect();
    const on = document.elementFromPoint((now.left + now.right) / 2, (now.top + now.bottom) / 2);
    return left < 0 || right > innerWidth || top === bottom || !d.contains(on);
  }).map((d) => d.textContent));
  assert.deepEqual(seen, [], `cells of the expectations that are not visible at ${width}`);
  check('report');
  await page.context().close();
}
await browser.close();
