// Tests the page of jobs in Chromium against a run of two jobs, one with a link that loses
// packets and one with a late rank: jobs.mjs URL FROM TO. The exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { accessible, base, browser, check, drawing, open, saved } from './session.mjs';

const [from, to] = process.argv.slice(3);
const time = new URLSearchParams({ from, to }).toString();
const api = async (path) => (await fetch(base + 'api/v1' + path)).json();
const page = await open();

// The list, by its shortcut, in the range of the URL.
await page.goto(base + '#/flows?' + time);
await page.getByText('live', { exact: true }).waitFor();
await page.keyboard.press('g');
await page.keyboard.press('j');
await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor();
const rows = page.getByRole('region', { name: 'Jobs of the range' }).locator('tbody tr');
await rows.nth(1).waitFor();
const { items } = await api('/jobs?' + time);
assert.equal(await rows.count(), items.length, 'a row for each job');
const lossy = items.find((j) => j.findings[0].cause === 'link');
const late = items.find((j) => j.findings[0].cause === 'compute');
assert.ok(lossy && late, `jobs of the run: ${JSON.stringify(items.map((j) => [j.name, j.findings[0].cause]))}`);
const words = (row) => row.innerText().then((t) => t.replace(/\s+/g, ' '));
assert.match(await words(rows.filter({ hasText: lossy.name })), /network link tor0 → leaf0 .* of a step all-to-all 5 /);
assert.match(await words(rows.filter({ hasText: late.name })), /compute h6 .* of a step ring 4 /);
await accessible(page, 'jobs');
check('list');

// One job: the matrix by keyboard, from its one tab stop.
await rows.filter({ hasText: lossy.name }).focus();
await page.keyboard.press('Enter');
await page.getByRole('heading', { level: 1, name: lossy.name }).waitFor();
const inUrl = (name) => new URLSearchParams(page.url().split('?')[1]).get(name);
assert.equal(inUrl('from'), from, 'the range of the page of a job');
assert.equal(inUrl('to'), to, 'the range of the page of a job');
const grid = page.getByRole('grid', { name: /^Delay matrix/ });
const detail = await api(`/jobs/${encodeURIComponent(lossy.name)}?${time}`);
assert.equal(await grid.getByRole('gridcell').count(), detail.cells.length, 'cells');
assert.equal(await grid.locator('[tabindex="0"]').count(), 1, 'tab stops of the matrix');
const focused = () => page.evaluate(() => document.activeElement.dataset.cell);
const hosts = detail.hosts;
await grid.locator('[tabindex="0"]').focus();
assert.equal(await focused(), `${hosts[0]}>${hosts[1]}`);
await page.keyboard.press('ArrowRight');
assert.equal(await focused(), `${hosts[0]}>${hosts[2]}`);
await page.keyboard.press('ArrowDown');
assert.equal(await focused(), `${hosts[1]}>${hosts[2]}`);
await page.keyboard.press('End');
assert.equal(await focused(), `${hosts[1]}>${hosts.at(-1)}`);
await page.keyboard.press('ArrowUp');
assert.equal(await focused(), `${hosts[0]}>${hosts.at(-1)}`);

// Every cell says its path's time in words; a drawing has them all.
const cell = (c) => grid.locator(`[data-cell="${c.src}>${c.dst}"]`);
for (const c of detail.cells) assert.match(await cell(c).getAttribute('aria-label'), new RegExp(`^${c.src} to ${c.dst}: \\d.*median$`));
await drawing(page.getByRole('region', { name: 'Delay matrix' }), 'the matrix', `>${hosts[0]}<`, `<title>${hosts[0]} &#62; ${hosts[1]}: `);
assert.equal(JSON.parse(await saved(page.locator('.view'), 'JSON')).cells.length, detail.cells.length);
await accessible(page, 'one job');

// From a cell that crosses the lossy link to its flows, their path and the incident.
const crossing = detail.cells.find((c) => c.path.some((n, i) => n === 'tor0' && c.path[i + 1] === 'leaf0'));
const clean = detail.cells.find((c) => !c.path.includes('tor0'));
assert.ok(crossing && clean, 'cells on and off the link');
await cell(clean).focus();
await page.keyboard.press('Enter');
const path = (c) => page.getByRole('region', { name: `Path from ${c.src} to ${c.dst}` });
await path(clean).getByText('None of this time.').waitFor();
await page.getByRole('region', { name: 'Verdict' }).getByRole('link', { name: `${crossing.src} → ${crossing.dst}` }).click();
await path(crossing).waitFor();
assert.equal(await cell(crossing).getAttribute('aria-selected'), 'true');
assert.equal(inUrl('cell'), `${crossing.src}>${crossing.dst}`);
const found = path(crossing);
await cell(crossing).click(); // a second time: none is selected
await found.waitFor({ state: 'detached' });
await cell(crossing).click();
await found.getByText(/tor0 > leaf0 loses/).waitFor();
await found.getByText('at tor0 Ethernet8 → leaf0, a hop of this path').waitFor();
assert.equal(await found.getByRole('list').first().getByRole('link').count(), crossing.path.length + 1, 'hops of the path');
await accessible(page, 'a path of a job');
const same = page.url();
const fresh = await open();
await fresh.goto(same);
await fresh.getByRole('region', { name: `Path from ${crossing.src} to ${crossing.dst}` }).waitFor(); // the URL is the state
await fresh.context().close();
const flow = detail.flow_list.find((f) => f.src === crossing.src && f.dst === crossing.dst);
await found.locator(`a[title="${flow.flow}"]`).click();
await page.getByRole('region', { name: 'Hops' }).waitFor();
assert.equal(inUrl('from'), from, 'the range of a flow of a job');
await page.goBack();
await found.getByRole('link', { name: /^i\d+ loss$/ }).click();
await page.getByRole('region', { name: 'Timeline' }).waitFor();
check('from a cell to an incident');

// Another metric; a job with a late rank.
await page.goto(`${base}#/jobs/${encodeURIComponent(late.name)}?${time}`);
await page.getByRole('combobox', { name: 'The matrix shows' }).selectOption('rate');
await page.getByRole('grid', { name: /rate while it sends/ }).waitFor();
await page.getByRole('region', { name: 'Verdict' }).getByText('h6 sends').waitFor();
assert.match(await words(page.getByRole('region', { name: 'Ranks' }).locator('tr').filter({ hasText: 'h6' })), /compute h6/);

// A range without steps, and a job that is not there.
await page.goto(`${base}#/jobs?${new URLSearchParams({ from: new Date(Date.parse(from) - 3600e3).toISOString(), to: new Date(Date.parse(from) - 3500e3).toISOString() })}`);
await page.getByText('No jobs in this range').waitFor();
check('metrics and ranges');

// A phone: nothing is wider than the screen but what scrolls inside it, in both themes.
for (const theme of ['light', 'dark']) {
  const phone = await open({ width: 390, height: 844 }, theme);
  for (const at of ['#/jobs?' + time, same.slice(base.length)]) {
    await phone.goto(base + at);
    await phone.getByRole('heading', { level: 1 }).waitFor();
    await phone.getByText('Loading…').first().waitFor({ state: 'detached' });
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${at} is wider than a phone`);
    await accessible(phone, `${theme} phone ${at}`);
  }
  await phone.getByRole('gridcell').first().waitFor();
  await phone.context().close();
}
check('phone');
await browser.close();
