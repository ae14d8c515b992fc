// Tests in Chromium how an operator follows a fault through the console of a running demo,
// and what operators ask of the fabric: browser.mjs URL [SHOTS]. The exit code is 1 after
// a failure. views.mjs tests every view.
import assert from 'node:assert/strict';
import { accessible, base, browser, check, drawing, open, saved, shots, show } from './session.mjs';

async function clickNode(page, name) {
  const canvas = page.locator('canvas[role=application]').first();
  const spot = await canvas.evaluate((c, n) => c.where(n), name);
  await canvas.click({ position: spot });
}

/** handle acknowledges, assigns, comments, verifies and proves the incident of the page, and copies a command of its runbook. */
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
  await handling.getByRole('button', { name: 'Prove' }).click();
  const proof = page.getByRole('region', { name: 'Proof' });
  await proof.getByRole('status').getByText(/^(proven|partly proven|refuted|not shown)$/).waitFor();
  await proof.getByRole('cell', { name: 'rebuilt', exact: true }).waitFor();
  await proof.getByRole('cell', { name: 'limited', exact: true }).waitFor(); // what a remedy gains
  await handling.getByRole('button', { name: 'Prove' }).waitFor(); // it may be asked again
  await timeline.getByText(/tested by experiment: /).waitFor();

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
await page.waitForFunction(() => { // it fits the page
  const g = document.querySelector('[aria-label^="Provenance graph"]');
  return g && g.scrollWidth <= g.clientWidth;
});
await page.getByRole('region', { name: /^Timeline of the packet, [1-9]/ }).waitFor();
await page.getByText(/(was late|is in flight and late) by /).first().waitFor();
await accessible(page, 'incident');
const urls = { incident: page.url() };
if (shots) await pictures({ map: base + '#/map', ...urls, lab: base + '#/lab?kind=incast&node=h4' });
show(page);
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

if (shots) {
  const view = (name) => [name.split('?')[0], `${base}#/${name}`];
  await pictures({ ...urls, ...Object.fromEntries(['incidents', 'flows', 'ports?last=200ms', 'traces?all=1', 'probes', 'counters', 'slow-flows', 'health'].map(view)) });
}

// A frozen range lists the incidents of its time only.
await page.goto(base + '#/incidents?from=2020-01-01T00:00:00Z&to=2020-01-01T00:01:00Z');
await page.getByText('No incidents in this range').waitFor();
const known = (await (await fetch(base + 'api/v1/incidents?last=1h&severity=warning')).json()).items.at(-1);
await page.goto(`${base}#/incidents?from=${known.begin}&to=${known.updated}`);
await page.getByRole('row', { name: new RegExp(`(open|closed|part of \\S+) \\S+ ${known.id}\\b`) }).waitFor();
check('frozen incidents');

await browser.close();

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
