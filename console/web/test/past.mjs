// Tests that the console shows the past as it was: past.mjs URL URLS PICTURES. Closed
// incidents of all kinds are drawn at their own time with their culprit red, links carry
// that time, and the same URLs have the same picture an hour of the fabric later. The
// first run writes the URLs and the pictures, the second compares with them.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [, , base, known, pictures] = process.argv;
const api = async (path) => (await fetch(base + 'api/v1' + path)).json();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-partial-raster'] });
const screens = [[1440, 900], [1280, 720], [390, 844]].flatMap(([width, height]) => ['light', 'dark'].map((colorScheme) => ({ viewport: { width, height }, colorScheme })));
const contexts = new Map();
const errors = [];

async function open(screen, hash) {
  const key = JSON.stringify(screen);
  if (!contexts.has(key)) contexts.set(key, await browser.newContext(screen));
  const page = await contexts.get(key).newPage();
  page.setDefaultTimeout(120_000); // test machines are slow; every wait is for a condition
  page.on('console', (m) => m.type() === 'error' && errors.push(`${hash}: ${m.text()} ${m.location().url}`));
  page.on('pageerror', (e) => errors.push(`${hash}: ${e.message}`));
  await page.goto(base + hash);
  await page.getByText('live', { exact: true }).waitFor();
  return page;
}

/** drawn waits until a page's map shows the state of its URL. */
async function drawn(page) {
  await page.waitForFunction(() => {
    const at = new URLSearchParams(location.hash.split('?')[1]).get('at');
    const time = document.querySelector('canvas[role=application]')?.dataset.time;
    return at && time && at.replace(/\.?0*Z$/, '') === time.replace(/\.?0*Z$/, '');
  });
  await page.getByText('Loading…').first().waitFor({ state: 'detached' });
}

/** redNodes returns the nodes that are filled with the colour of root causes. */
function redNodes(page) {
  return page.locator('canvas[role=application]').first().evaluate((canvas, names) => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue('--critical').trim();
    const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    const ratio = canvas.width / canvas.clientWidth;
    return names.filter((name) => {
      const spot = canvas.where(name);
      const { data } = canvas.getContext('2d').getImageData(Math.round((spot.x - 3) * ratio), Math.round((spot.y - 3) * ratio), 6 * ratio, 6 * ratio);
      let red = 0;
      for (let i = 0; i < data.length; i += 4) if (want.every((w, j) => Math.abs(data[i + j] - w) < 4)) red++;
      return red >= 4;
    });
  }, names);
}
const names = (await api('/topology')).nodes.map((n) => n.name);

/** screenshot is a picture without what is about now: the clock, the number of open incidents. */
const screenshot = (page) => page.screenshot({ animations: 'disabled', caret: 'hide', mask: [page.locator('.clock'), page.locator('.pace'), page.locator('nav')] });

/** largestDifference compares two pictures by their pixels' channels, 0 to 255. */
async function largestDifference(a, b) {
  comparer ??= await browser.newPage();
  return comparer.evaluate(async (files) => {
    const [x, y] = await Promise.all(files.map(async (data) => {
      const image = new Image();
      image.src = 'data:image/png;base64,' + data;
      await image.decode();
      const c = new OffscreenCanvas(image.width, image.height).getContext('2d');
      c.drawImage(image, 0, 0);
      return c.getImageData(0, 0, image.width, image.height).data;
    }));
    return x.length === y.length ? x.reduce((most, v, i) => Math.max(most, Math.abs(v - y[i])), 0) : 255;
  }, [a.toString('base64'), b.toString('base64')]);
}
let comparer;
const noise = 24; // Chromium rounds the edges of curves differently from time to time

/** same takes pictures until one is as wanted, or, without one, until two are equal. */
async function same(page, what, file) {
  let last;
  for (let i = 0; i < 60; i++) {
    const next = await screenshot(page);
    const wanted = existsSync(file) ? readFileSync(file) : last;
    if (wanted && (await largestDifference(next, wanted)) <= noise) {
      writeFileSync(file, next);
      return;
    }
    last = next;
  }
  writeFileSync(file.replace('.png', '-other.png'), last);
  assert.fail(`${what} looks different: ${file}`);
}

/** phone checks that the views of a phone need no horizontal scrolling, and that lists are cards whose sentence is visible. */
async function phone(page) {
  for (const view of ['map', 'incidents', 'flows', 'jobs', 'traces', 'ports', 'lab']) {
    await page.goto(base + '#/' + view + '?last=1h');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByText('Loading…').first().waitFor({ state: 'detached' });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view} is wider than a phone`);
    if (view === 'map' || view === 'lab') {
      const { width, height } = await page.locator('canvas[role=application]').boundingBox();
      assert.ok(width > 300 && height > 200, `the map of ${view} has ${width} by ${height} pixels on a phone`);
    }
    if (view === 'map') assert.ok((await page.getByRole('slider', { name: 'Time' }).boundingBox()).width > 60, 'the time slider has no width on a phone');
    if (view === 'incidents') {
      const box = await page.getByRole('row').nth(1).getByText(/ (at|to|of|after) /).last().boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 390, `the sentence of an incident is at ${JSON.stringify(box)} on a phone`);
    }
  }
}

/** opened checks a map that is opened with a time and no range: the slider is at that time, in a range around it. */
async function opened(d, at) {
  const page = await open(screens[0], `#/map?incident=${d.id}&at=${encodeURIComponent(at)}`);
  await drawn(page);
  const slider = page.getByRole('slider', { name: 'Time' });
  assert.equal(await slider.getAttribute('aria-valuetext'), at.slice(11, 23), 'the time of the slider');
  assert.ok(Math.abs((await slider.inputValue()) - (await slider.getAttribute('max')) / 2) <= 1, 'the slider is in the middle of its range');
  assert.ok(!(await page.locator('body').innerText()).includes('before'), 'no distance from now');
  await page.close();
}

try {
  const fileOf = (i) => `${pictures}/${i}.png`;
  if (existsSync(known)) {
    const urls = JSON.parse(readFileSync(known));
    for (const [i, [screen, hash]] of urls.entries()) {
      const page = await open(screens[screen], hash);
      await drawn(page);
      assert.equal(page.url(), base + hash, 'a URL with a time stays as it is');
      await same(page, hash, fileOf(i));
      await page.close();
    }
    console.log(`${urls.length} pictures are equal`);
  } else {
    const pages = await Promise.all(['warning', 'critical'].map((severity) => api(`/incidents?last=1h&limit=200&state=closed&severity=${severity}`)));
    const closed = pages.flatMap((p) => p.items);
    const details = await Promise.all(closed.map((i) => api('/incidents/' + i.id)));
    const kinds = [...new Map(details.filter((d) => !d.merged_into).map((d) => [d.cause, d])).values()];
    console.log('causes:', kinds.map((d) => `${d.cause} at ${d.location}`).join(', '));
    for (const want of ['incast', 'blackhole', 'storm', 'loop', 'loss', 'imbalance']) assert.ok(kinds.some((d) => d.cause === want), `no closed incident of cause ${want}`);
    const urls = [];
    const picture = async (page, screen) => {
      await same(page, page.url(), fileOf(urls.length));
      urls.push([screen, page.url().slice(base.length)]);
    };
    const keep = async (page, screen) => {
      const hash = page.url().slice(base.length);
      const fresh = await open(screens[screen], hash); // without a pointer or a focus
      await drawn(fresh);
      await picture(fresh, screen);
      await fresh.close();
    };
    for (const [i, d] of kinds.entries()) {
      const screen = i % screens.length;
      const page = await open(screens[screen], '#/incidents/' + d.id);
      await drawn(page);
      const culprit = d.location.split(':')[0];
      assert.deepEqual(await redNodes(page), [culprit], `${d.cause} ${d.id}: red on its map`);
      const at = new URL(page.url().replace('#', '')).searchParams.get('at');
      assert.ok(at >= d.begin.replace('Z', '') && at <= d.end, `${d.id} from ${d.begin} to ${d.end} is drawn at ${at}`);
      await picture(page, screen);

      // Its map, with the health of that time; links carry it.
      await page.getByRole('link', { name: 'On the map' }).click();
      await page.getByRole('heading', { level: 1, name: 'Fabric map' }).waitFor();
      await drawn(page);
      assert.equal(new URL(page.url().replace('#', '')).searchParams.get('at'), at);
      assert.ok((await redNodes(page)).includes(culprit), `${d.id}: the culprit is red on the map of its time`);
      await page.getByRole('group', { name: 'Open incidents' }).getByText(d.location).first().waitFor();
      if (i < 2) await keep(page, screen);
      await page.close();
      if (i === 0) await opened(d, at);
      for (let other = 0; other < screens.length; other++) {
        if (other === screen) continue;
        const small = await open(screens[other], '#/incidents/' + d.id);
        await drawn(small);
        assert.deepEqual(await redNodes(small), [culprit], `${d.cause} ${d.id}: red on its map at ${JSON.stringify(screens[other])}`);
        await picture(small, other);
        if (i === 0 && screens[other].viewport.width < 400 && screens[other].colorScheme === 'light') await phone(small);
        await small.close();
      }
    }
    // The port and a flow of an incident, at its time.
    const loss = kinds.find((d) => d.cause === 'loss');
    const page = await open(screens[0], '#/incidents/' + loss.id);
    await drawn(page);
    const time = page.url().split('?')[1];
    await page.getByRole('region', { name: 'Timeline' }).getByRole('link').first().click();
    await page.getByRole('figure', { name: /^Queue/ }).waitFor();
    await drawn(page);
    assert.equal(page.url().split('?')[1], time, 'the time of a port that an incident names');
    await keep(page, 0);
    await page.goBack();
    await drawn(page);
    await page.getByRole('region', { name: 'Victims' }).getByRole('link').first().click();
    await page.getByRole('region', { name: 'Hops' }).waitFor();
    await drawn(page);
    assert.equal(page.url().split('?')[1], time, 'the time of a flow that an incident names');
    await keep(page, 0);

    // Dragging over a chart narrows the range, and Live leaves it.
    await page.goto(base + urls.at(-2)[1]);
    const chart = page.getByRole('figure', { name: /^Queue/ }).locator('.u-over');
    const box = await chart.boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 20, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction((was) => location.hash.split('?')[1] !== was, time);
    const [was, now] = [new URLSearchParams(time), new URLSearchParams(page.url().split('?')[1])];
    assert.ok(now.get('from') > was.get('from') && now.get('to') < was.get('to'), `narrowed from ${was} to ${now}`);
    await page.getByRole('button', { name: 'Live', exact: true }).click();
    await page.waitForFunction(() => location.hash.includes('last='));
    assert.ok(!page.url().includes('from='), 'a live range has no start');
    await page.close();
    writeFileSync(known, JSON.stringify(urls));
  }
  assert.deepEqual(errors, [], 'errors in the console');
} catch (e) {
  const pages = [...contexts.values()].flatMap((c) => c.pages());
  for (const page of pages) console.log(page.url(), (await page.locator('main').innerText({ timeout: 5000 }).catch(String)).slice(0, 500));
  console.log('errors in the console:', errors);
  throw e;
} finally {
  await browser.close();
}
