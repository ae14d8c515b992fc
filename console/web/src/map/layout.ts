// Positions of the fabric's nodes: tiers from hosts at the bottom to spines at the
// top, pods side by side, hosts below their switch. A pod may be collapsed into one
// box; its switches are then on the upper edge of the box. In a large fabric, the
// switches of the top tier with the same neighbours are a box, too, and the links
// between two boxes, or a switch and a box, are one bundle.
import type { Node, Topology } from '../api/client';
import type { Port, Ports } from './port_states';

export interface Spot {
  node: Node;
  x: number;
  y: number;
  w: number;
  h: number;
  pod: number; // -1: none
  hidden: boolean; // inside a box
  first: number; // index of its first port
  box: Pod | undefined; // that it is inside of
}

/** Half is the half of a link, or of a bundle, next to the port that sends into it. */
export interface Half {
  port: Port;
  ports?: number[]; // of a bundle, by index
  title?: string; // of a bundle
  pod?: number; // collapsed, at an end of a bundle
  x1: number;
  y1: number; // at the port
  x2: number;
  y2: number; // at the link's middle
}

/** Pod is a pod, collapsed or not, or a box of switches in the top tier. */
export interface Pod {
  id: number; // negative: not a pod
  title: string;
  x: number;
  y: number;
  w: number;
  h: number;
  folded: boolean;
  spots: Spot[];
  rows: Spot[][]; // its switches, by tier
}

export interface Layout {
  spots: Spot[]; // in the order of the topology
  visible: Spot[];
  byName: Map<string, Spot>;
  halves: (Half | undefined)[]; // by Port.index; undefined: inside a box
  shown: Half[]; // to draw
  pods: Pod[];
  groups: Pod[]; // boxes of the top tier
  tiers: { y: number; title: string }[];
  width: number;
  height: number;
}

const pitch = 34; // between hosts
const switchGap = 22;
const podGap = 46;
const podPad = 16;
const hostSize = 16;
const switchW = 54;
const switchH = 20;
const foldedW = 150;
const foldedH = 110;
const groupH = 90;

const titles: Record<string, string> = { host: 'hosts', mux: 'muxes', tor: 'top of rack', leaf: 'leaves', spine: 'spines', border: 'border', switch: 'switches' };

/** layout arranges the fabric for an aspect ratio, height by width. */
export function layout(t: Topology, ports: Ports, folded: ReadonlySet<number>, aspect: number, bundled: boolean): Layout {
  const spots = t.nodes.map((node, i): Spot => {
    const host = node.tier === 0;
    return { node, x: 0, y: 0, w: host ? hostSize : switchW, h: host ? hostSize : switchH, pod: node.pod ?? -1, hidden: false, first: ports.first[i]!, box: undefined };
  });
  const byName = new Map(spots.map((s) => [s.node.name, s]));
  const top = Math.max(...spots.map((s) => s.node.tier));

  // Hosts by their first switch, in columns so that a rack is about as wide as high.
  const racks = new Map<string, Spot[]>();
  for (const s of spots) {
    const peer = s.node.ports[0]?.peer;
    if (s.node.tier === 0 && peer) racks.set(peer, [...(racks.get(peer) ?? []), s]);
  }
  const columns = (n: number) => (n <= 4 ? Math.max(1, n) : Math.ceil(Math.sqrt(n * 2)));
  const rackWide = (s: Spot) => Math.max(switchW, columns(racks.get(s.node.name)?.length ?? 0) * pitch) + switchGap;
  const deepest = Math.max(1, ...[...racks.values()].map((r) => Math.ceil(r.length / columns(r.length))));

  // Groups: pods, and one for nodes that are in no pod and not in the top tier.
  const groups = new Map<number, Spot[]>();
  for (const s of spots) {
    if (s.node.tier === 0 || (s.pod < 0 && s.node.tier === top && top > 1)) continue;
    groups.set(s.pod, [...(groups.get(s.pod) ?? []), s]);
  }
  const wide = (g: Spot[], tier: number) => g.filter((s) => s.node.tier === tier).reduce((sum, s) => sum + rackWide(s), 0);
  const order = [...groups.keys()].sort((a, b) => a - b);
  const tops = spots.filter((s) => s.pod < 0 && s.node.tier === top && top > 1);
  const topGroups = bundled ? sameNeighbours(tops) : [];
  const topWide = bundled ? topGroups.length * (foldedW + switchGap) : tops.length * (switchW + switchGap / 2);
  const allFolded = order.every((id) => folded.has(id));
  // If all pods are collapsed they share the width of the spines.
  const wideBox = allFolded ? Math.max(foldedW, topWide / order.length - podGap) : foldedW;
  const highBox = Math.max(foldedH, wideBox * 0.6);
  const sizes = new Map(order.map((id) => {
    const g = groups.get(id)!;
    return [id, folded.has(id) ? wideBox : Math.max(...[...Array(top + 1).keys()].map((tier) => wide(g, tier))) + podPad];
  }));
  const width = Math.max([...sizes.values()].reduce((a, b) => a + b + podGap, -podGap), topWide);
  const hostsHigh = 46 + (allFolded ? 0 : (deepest - 1) * (hostSize + 8));
  // Long horizontal links need height to be distinguishable: use all available height.
  const [rises, below] = allFolded ? [1.3, highBox] : [0.8 * (top - 1) + 0.5, hostsHigh];
  const rise = Math.max(95, Math.min((width * aspect - below - 60) / rises, 6000));
  const y = (tier: number) => (tier === 0 ? 0 : -hostsHigh - rise * 0.8 * (tier - 1) - (tier === top && tier > 1 ? rise * 0.5 : 0));

  const pods: Pod[] = [];
  let left = Math.max(0, (width - [...sizes.values()].reduce((a, b) => a + b + podGap, -podGap)) / 2);
  for (const id of order) {
    const g = groups.get(id)!;
    const w = sizes.get(id)!;
    const fold = folded.has(id);
    const inner = Math.max(...g.map((s) => s.node.tier));
    const pod: Pod = { id, title: `pod ${id}`, x: left, y: y(inner) - 36, w, h: 0, folded: fold, spots: [...g], rows: [] };
    for (let tier = top; tier > 0; tier--) if (g.some((s) => s.node.tier === tier)) pod.rows.push(g.filter((s) => s.node.tier === tier));
    pod.h = fold ? highBox : (deepest - 1) * (hostSize + 8) + hostSize / 2 + podPad - pod.y;
    for (let tier = 1; tier <= top; tier++) {
      const row = g.filter((s) => s.node.tier === tier);
      const slack = (w - podPad - wide(row.length ? g : [], tier)) / Math.max(1, row.length);
      let x = left + podPad / 2;
      for (const s of row) {
        const slot = rackWide(s) + slack;
        s.x = x + slot / 2;
        s.y = y(tier);
        x += slot;
      }
      if (fold) {
        row.forEach((s, i) => {
          s.x = left + ((i + 0.5) / row.length) * w;
          s.y = tier === inner ? pod.y : pod.y + highBox / 2;
          s.hidden = true;
          s.box = pod;
        });
      }
    }
    for (const s of g) {
      const hosts = racks.get(s.node.name) ?? [];
      const cols = columns(hosts.length);
      hosts.forEach((h, i) => {
        const inRow = Math.min(cols, hosts.length - Math.floor(i / cols) * cols);
        h.x = s.x + ((i % cols) - (inRow - 1) / 2) * pitch;
        h.y = Math.floor(i / cols) * (hostSize + 8);
        h.pod = id;
        h.hidden = fold;
        if (fold) [h.x, h.y, h.box] = [s.x, pod.y + highBox * 0.8, pod];
        pod.spots.push(h);
      });
    }
    pods.push(pod);
    left += w + podGap;
  }
  tops.forEach((s, i) => {
    s.x = ((i + 0.5) / tops.length) * width;
    s.y = y(top);
  });

  const boxes = topGroups.map((g, i): Pod => {
    const w = Math.max(foldedW, (width / topGroups.length) * 0.6);
    const title = g.length > 1 ? `${g[0]!.node.name} … ${g.at(-1)!.node.name}` : g[0]!.node.name;
    const box: Pod = { id: -2 - i, title, x: ((i + 0.5) / topGroups.length) * width - w / 2, y: y(top) - groupH, w, h: groupH, folded: true, spots: g, rows: [g] };
    g.forEach((s, j) => Object.assign(s, { x: box.x + ((j + 0.5) / g.length) * w, y: y(top), hidden: true, box }));
    return box;
  });

  const lowest = Math.max(...spots.map((s) => s.y), ...pods.map((p) => p.y + p.h));
  const highest = Math.min(...spots.map((s) => s.y), ...pods.map((p) => p.y), ...boxes.map((p) => p.y)) - switchH;
  for (const s of spots) s.y -= highest;
  for (const p of [...pods, ...boxes]) p.y -= highest;
  const tiers = [...Array(top + 1).keys()].map((tier) => {
    const some = spots.find((s) => s.node.tier === tier && (!s.hidden || (s.box?.id ?? 0) < 0));
    return { y: some ? some.y : NaN, title: some ? titles[some.node.role] ?? some.node.role : '' };
  });
  const drawn = lines(ports, spots, bundled, boxes);
  const visible = spots.filter((s) => !s.hidden);
  return { spots, visible, byName, ...drawn, pods, groups: boxes, tiers: tiers.filter((x) => !Number.isNaN(x.y)), width, height: lowest - highest };
}

/** sameNeighbours groups switches that are connected to the same ones. */
export function sameNeighbours<T extends { node: Node }>(list: T[]): T[][] {
  const groups = new Map<string, T[]>();
  for (const s of list) {
    const key = [...new Set(s.node.ports.map((p) => p.peer))].sort().join(' ');
    const g = groups.get(key);
    if (g) g.push(s);
    else groups.set(key, [s]);
  }
  return [...groups.values()];
}

/** lines returns the halves of links by port, and those to draw, in which bundles stand for their links. */
function lines(ports: Ports, spots: Spot[], bundled: boolean, groups: Pod[]): { halves: (Half | undefined)[]; shown: Half[] } {
  const halves: (Half | undefined)[] = new Array(ports.list.length).fill(undefined);
  const shown: Half[] = [];
  const bundles = new Map<number, Half>();
  const most = spots.length + groups.length + 2;
  // A box is numbered after the nodes: collapsed pods by their first switch.
  const end = (s: Spot, at: number) => (!s.box ? at : s.box.id < 0 ? spots.length + (-2 - s.box.id) : ports.from[s.box.spots[0]!.first]!);
  for (const port of ports.list) {
    const [i, j] = [ports.from[port.index]!, ports.to[port.index]!];
    if (j < 0) continue;
    const [a, b] = [spots[i]!, spots[j]!];
    if (a.box && a.box === b.box) continue;
    if (bundled && (a.box || b.box)) {
      const key = end(a, i) * most + end(b, j);
      const known = bundles.get(key);
      if (known) {
        known.ports!.push(port.index);
        halves[port.index] = known;
        continue;
      }
      const [ax, ay] = edge(a, b, groups);
      const [bx, by] = edge(b, a, groups);
      const box = a.box && a.box.id >= 0 ? a.box : b.box && b.box.id >= 0 ? b.box : undefined;
      const half: Half = {
        port, ports: [port.index], title: `${a.box?.title ?? a.node.name} → ${b.box?.title ?? b.node.name}`, ...(box ? { pod: box.id } : {}),
        x1: ax, y1: ay, x2: (ax + bx) / 2, y2: (ay + by) / 2,
      };
      bundles.set(key, half);
      halves[port.index] = half;
      shown.push(half);
      continue;
    }
    const [ax, ay] = dock(a, b);
    const [bx, by] = dock(b, a);
    const half: Half = { port, x1: ax, y1: ay, x2: (ax + bx) / 2, y2: (ay + by) / 2 };
    halves[port.index] = half;
    shown.push(half);
  }
  return { halves, shown };
}

/** edge is the point where a bundle leaves a node or a box: pods have one for each box of the top tier. */
function edge(a: Spot, b: Spot, groups: Pod[]): [number, number] {
  if (!a.box) return dock(a, b);
  if (a.box.id < 0) return [a.box.x + a.box.w / 2, a.box.y + a.box.h];
  const i = b.box ? groups.indexOf(b.box) : -1;
  return [a.box.x + (i < 0 ? 0.5 : (i + 0.5) / groups.length) * a.box.w, a.box.y];
}

/** dock is the point where a link leaves a node: on the side that faces its peer. */
function dock(a: Spot, b: Spot): [number, number] {
  if (a.hidden) return [a.x, a.y];
  const side = b.y < a.y - 1 ? -1 : b.y > a.y + 1 ? 1 : 0;
  const lean = Math.max(-1, Math.min(1, (b.x - a.x) / 400)) * (a.w / 2 - 5);
  return [a.x + (side ? lean : (Math.sign(b.x - a.x) * a.w) / 2), a.y + (side * a.h) / 2];
}
