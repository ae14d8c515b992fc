// Tests the map of a fat-tree of k=32 (9,472 nodes, 49,152 ports) in Chromium:
// large.mjs URL [SHOTS]. The server's console is used, topology and states are made
// here. Prints measurements; the exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';
import { fatTree, states } from './fabric.mjs';

const [, , base, shots] = process.argv;
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const patience = 60_000; // test machines are slow; every wait is for a condition
const k = 32;
const topology = fatTree(k);
const victim = 'tor77'; // of pod 4
const incident = {
  id: 'i1', begin: '2026-01-01T00:00:00Z', updated: '2026-01-01T00:00:00Z', state: 'open', cause: 'incast', severity: 'critical', location: victim,
  summary: 'incast', confidence: 1, flows: 1, actions: [],
};
const detail = {
  ...incident, sentence: 'incast', remedy: '', timeline: [], evidence: [], missing: [], culprits: [], victims: [], diagnoses: [],
  nodes: ['tor300'], links: [], pfc_path: [], loop: [],
};

// The events are sent by a server of our own, so that changes arrive while the map is
// used. They are of ports all over the fabric.
const changes = Array.from({ length: 8 }, (_, i) => {
  const ports = topology.nodes.filter((n, j) => n.role !== 'host' && j % 8 === i).flatMap((n) => n.ports.filter((p) => p.port % 8 === i).map((p) => ({
    node: n.name, port: p.port, load_bps: 5e10, load_share: ((n.name.length + p.port + i) % 10) / 10, queue_bytes: 1000 * p.port, latency_ns: 800, paused_share: 0, lost_packets: 0, age_ms: 1,
  })));
  return `event: state\ndata: ${JSON.stringify({ full: false, time: `2026-01-01T00:00:0${i + 1}Z`, nodes: [], ports })}\n\n`;
});
let ticks = 0;
const events = createServer((_, r) => {
  r.writeHead(200, { 'Content-Type': 'text/event-stream', 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*' });
  if (_.method === 'OPTIONS') return void r.end();
  r.write(states(topology));
  const timer = setInterval(() => r.writableNeedDrain || r.write(changes[ticks++ % changes.length]), 500);
  r.on('close', () => clearInterval(timer));
});
await new Promise((done) => events.listen(0, '127.0.0.1', done));
const eventsAt = `http://127.0.0.1:${events.address().port}/`;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
const context = await browser.newContext({ viewport: { width: 1920, height: 1080 }, bypassCSP: true });
const page = await context.newPage();
page.setDefaultTimeout(patience);
const errors = [];
page.on('console', (m) => m.type() === 'error' && errors.push(`${m.text()} ${m.location().url}`));
page.on('pageerror', (e) => errors.push(e.message));
process.on('uncaughtException', async (e) => {
  console.log(e, '\nerrors in the console:', errors, '\n' + (await page.locator('body').innerText({ timeout: 5000 }).catch(() => '')).slice(0, 1000));
  process.exit(1);
});
let incidents = [];
await page.route('**/api/v1/topology', (r) => r.fulfill({ json: topology }));
await page.route('**/api/v1/incidents?*', (r) => r.fulfill({ json: { items: incidents } }));
await page.route('**/api/v1/incidents/i1', (r) => r.fulfill({ json: detail }));
await page.addInitScript((at) => {
  const plain = window.fetch;
  window.newlines = 0; // of events that have arrived: three in each
  const counted = () => new TransformStream({
    transform(bytes, to) {
      for (const b of bytes) if (b === 10) window.newlines++;
      to.enqueue(bytes);
    },
  });
  window.fetch = async (to, init) => {
    if (!String(to).endsWith('/api/v1/events')) return plain(to, init);
    const r = await plain(at, init);
    return new Response(r.body.pipeThrough(counted()), r);
  };
  // What happens in beforeFrame is in time for the frame, however long frames take.
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (f) => request((time) => {
    window.beforeFrame?.();
    f(time);
  });
  // The map notes the number of elements whenever it draws them. While it only moves
  // its last image, it does not.
  window.drawings = [];
  new MutationObserver((list) => list.forEach((m) => window.drawings.push(Number(m.target.dataset.drawn)))).observe(document, { subtree: true, attributeFilter: ['data-drawn'] });
}, eventsAt);

const canvas = page.locator('canvas[role=application]');
const boxes = () => canvas.evaluate((c) => c.boxes());
const expandedPods = async () => (await boxes()).filter((b) => b.id >= 0 && !b.folded).map((b) => b.id);
const where = (name) => canvas.evaluate((c, n) => c.where(n), name);
/** until waits for a condition of the map. */
const until = (what, argument) => page.waitForFunction(what, argument);
/** fit shows the whole map and waits until it is drawn with so many elements; states arrive, so it is drawn again and again. */
const fit = async (elements) => {
  await until(() => {
    const c = document.querySelector('canvas[role=application]');
    return c.width === Math.floor(c.clientWidth * Math.min(devicePixelRatio, 2)); // it knows its size, also after a panel was closed
  });
  await page.getByRole('button', { name: 'Fit' }).click();
  const seen = await page.evaluate(() => window.drawings.length);
  await until((n) => window.drawings.length > n, seen);
  assert.equal(await page.evaluate(() => window.drawings.at(-1)), elements, 'drawn elements');
};

// Collapsed by itself: all pods, the spines in boxes, links in bundles. Cells of the
// switches in pods and of spines, and the two halves of bundles are drawn.
const collapsed = k * k + (k * k) / 4 + k * k;
// An expanded pod has nodes and links, and a bundle from each leaf, instead of cells and bundles.
const half = k / 2;
const ofPod = k + half * half + 2 * (half * half + half * half) + 2 * half - k - 2 * half;
const most = 3; // pods, in the limit of folding.ts
await page.goto(base + '#/map');
await canvas.waitFor();
await until(() => window.drawings.length > 0 && window.newlines >= 3);
assert.deepEqual(await expandedPods(), [], 'pods are expanded at first');
const all = await boxes();
assert.equal(all.filter((b) => b.id >= 0).length, k, 'boxes of pods');
assert.equal(all.filter((b) => b.id < 0).length, k / 2, 'boxes of spines');
await fit(collapsed);
if (shots) await page.screenshot({ path: `${shots}/k32-folded.png` });

// A click expands a pod, whose nodes are then there; what is drawn stays bounded,
// however many pods are clicked.
const clicked = [];
for (const pod of [7, 20, 31, 12, 3]) {
  await canvas.click({ position: await canvas.evaluate((c, id) => c.wherePod(id), pod) });
  await until((id) => document.querySelector('canvas[role=application]').boxes().some((b) => b.id === id && !b.folded), pod);
  clicked.push(pod);
  assert.deepEqual(await expandedPods(), clicked.slice(-most).sort((a, b) => a - b), 'the pods that were expanded last');
  await fit(collapsed + ofPod * Math.min(most, clicked.length));
}
const expanded = await expandedPods();
if (shots) await page.screenshot({ path: `${shots}/k32-pods.png` });

// A switch of the pod can be selected.
await canvas.click({ position: await where('tor192') });
await page.getByRole('complementary').getByRole('heading', { name: /^tor192/ }).waitFor();
await page.getByRole('complementary').getByRole('button', { name: /close/i }).first().click();
await page.getByRole('complementary').getByRole('heading', { name: /^tor192/ }).waitFor({ state: 'detached' });
await fit(collapsed + ofPod * most);

// Panning moves the map by as much as the pointer, and clicks nothing.
const was = await where('tor192');
const area = await canvas.boundingBox();
const [x, y] = [area.x + area.width / 2, area.y + area.height / 2];
await page.mouse.move(x, y);
await page.mouse.down();
await page.mouse.move(x + 120, y + 60, { steps: 10 });
await page.mouse.up();
await until(({ x, y }) => {
  const now = document.querySelector('canvas[role=application]').where('tor192');
  return Math.abs(now.x - x - 120) < 1 && Math.abs(now.y - y - 60) < 1;
}, was);
assert.deepEqual(await expandedPods(), expanded, 'panning expands and collapses nothing');

// Zooming while states arrive: frames show the last image moved, and draw no element.
const zoomed = await canvas.evaluate((c) => new Promise((done) => {
  const drawn = window.drawings.length;
  const events = window.newlines;
  let frames = 0;
  let last = 0;
  window.beforeFrame = () => {
    if (last === (last = document.timeline.currentTime)) return; // another callback of the same frame
    const before = c.where('tor192');
    c.dispatchEvent(new WheelEvent('wheel', { deltaY: frames % 20 < 10 ? -40 : 40, clientX: 900, clientY: 500, bubbles: true, cancelable: true }));
    const after = c.where('tor192');
    if (before.x === after.x && before.y === after.y) return;
    frames++;
    const states = Math.floor((window.newlines - events) / 3);
    if (frames < 30 || states < 3) return;
    window.beforeFrame = undefined;
    queueMicrotask(() => done({ frames, states, drawings: window.drawings.length - drawn }));
  };
}));
assert.equal(zoomed.drawings, 0, `drawings in ${zoomed.frames} frames of zooming`);
// Then it is drawn again, and with every state, but never more of it.
const rest = await page.evaluate(() => window.drawings.length);
await until((n) => window.drawings.length >= n + 3, rest);
await fit(collapsed + ofPod * most);
const largest = await page.evaluate(() => Math.max(...window.drawings));
assert.equal(largest, collapsed + ofPod * most, 'elements of the largest drawing');
const elements = topology.nodes.length + 2 * topology.links.length;
console.log(`k=32: ${collapsed} of ${elements} elements collapsed, at most ${largest} with expanded pods; ${zoomed.frames} frames of zooming and ${zoomed.states} states without a drawing; drawing ${await canvas.evaluate((c) => c.dataset.drawMs)} ms`);

// An incident: its pod is expanded at first, and marked; another one is expanded when
// the incident that is at it is selected.
incidents = [incident];
await page.reload();
await until(() => document.querySelector('canvas[role=application]')?.boxes?.().some((b) => b.id === 4 && !b.folded && b.alarm === 'critical'));
assert.deepEqual(await expandedPods(), [4], 'pods of the incident');
await page.getByRole('button', { name: /incast at tor77/ }).click();
await until(() => document.querySelector('canvas[role=application]').boxes().some((b) => b.id === 18 && !b.folded)); // that of tor300
await page.getByRole('button', { name: 'Collapse pods' }).click();
await until(() => document.querySelector('canvas[role=application]').boxes().every((b) => b.folded));
assert.deepEqual((await boxes()).filter((b) => b.alarm).map((b) => b.id), [4], 'marked pods');
if (shots) await page.screenshot({ path: `${shots}/k32-incident.png` });
assert.deepEqual(errors, [], 'errors in the console');
await browser.close();
events.closeAllConnections();
events.close();
