// Positions of the fabric's nodes: tiers from hosts at the bottom to spines at the
// top, pods side by side, hosts below their switch. A pod may be collapsed into one
// box; its switches are then on the upper edge of the box.
import type { Node, Topology } from '../api/client';
import type { Port, Ports } from './port_states';

export interface Spot {
  node: Node;
  x: number;
  y: number;
  w: number;
  h: number;
  pod: number; // -1: none
  hidden: boolean; // inside a collapsed pod
}

/** Half is the half of a link next to the port that sends into it. */
export interface Half {
  port: Port;
  x1: number;
  y1: number; // at the port
  x2: number;
  y2: number; // at the link's middle
  hidden: boolean;
}

export interface Pod {
  id: number;
  x: number;
  y: number;
  w: number;
  h: number;
  folded: boolean;
  spots: Spot[];
}

export interface Layout {
  spots: Spot[];
  byName: Map<string, Spot>;
  halves: (Half | undefined)[]; // by Port.index
  pods: Pod[];
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

const titles: Record<string, string> = { host: 'hosts', mux: 'muxes', tor: 'top of rack', leaf: 'leaves', spine: 'spines', border: 'border', switch: 'switches' };

/** layout arranges the fabric for an aspect ratio, height by width. */
export function layout(t: Topology, ports: Ports, folded: ReadonlySet<number>, aspect: number): Layout {
  const spots = t.nodes.map((node): Spot => {
    const host = node.tier === 0;
    return { node, x: 0, y: 0, w: host ? hostSize : switchW, h: host ? hostSize : switchH, pod: node.pod ?? -1, hidden: false };
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
  const allFolded = order.every((id) => folded.has(id));
  // If all pods are collapsed they share the width of the spines.
  const wideBox = allFolded ? Math.max(foldedW, (tops.length * (switchW + switchGap / 2)) / order.length - podGap) : foldedW;
  const highBox = Math.max(foldedH, wideBox * 0.6);
  const sizes = new Map(order.map((id) => {
    const g = groups.get(id)!;
    return [id, folded.has(id) ? wideBox : Math.max(...[...Array(top + 1).keys()].map((tier) => wide(g, tier))) + podPad];
  }));
  const width = Math.max([...sizes.values()].reduce((a, b) => a + b + podGap, -podGap), tops.length * (switchW + switchGap / 2));
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
    const pod: Pod = { id, x: left, y: y(inner) - 36, w, h: 0, folded: fold, spots: [...g] };
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
        if (fold) [h.x, h.y] = [s.x, pod.y + highBox * 0.8];
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

  const lowest = Math.max(...spots.map((s) => s.y), ...pods.map((p) => p.y + p.h));
  const highest = Math.min(...spots.map((s) => s.y), ...pods.map((p) => p.y)) - switchH;
  for (const s of spots) s.y -= highest;
  for (const p of pods) p.y -= highest;
  const tiers = [...Array(top + 1).keys()].map((tier) => {
    const some = spots.find((s) => s.node.tier === tier && !s.hidden);
    return { y: some ? some.y : NaN, title: some ? titles[some.node.role] ?? some.node.role : '' };
  });
  return { spots, byName, halves: halves(ports, byName), pods, tiers: tiers.filter((x) => !Number.isNaN(x.y)), width, height: lowest - highest };
}

function halves(ports: Ports, byName: Map<string, Spot>): (Half | undefined)[] {
  return ports.list.map((port) => {
    const a = byName.get(port.node);
    const b = byName.get(port.peer);
    if (!a || !b) return undefined;
    const [ax, ay] = dock(a, b);
    const [bx, by] = dock(b, a);
    const hidden = a.hidden && b.hidden && a.pod === b.pod;
    return { port, x1: ax, y1: ay, x2: (ax + bx) / 2, y2: (ay + by) / 2, hidden };
  });
}

/** dock is the point where a link leaves a node: on the side that faces its peer. */
function dock(a: Spot, b: Spot): [number, number] {
  if (a.hidden) return [a.x, a.y];
  const side = b.y < a.y - 1 ? -1 : b.y > a.y + 1 ? 1 : 0;
  const lean = Math.max(-1, Math.min(1, (b.x - a.x) / 400)) * (a.w / 2 - 5);
  return [a.x + (side ? lean : (Math.sign(b.x - a.x) * a.w) / 2), a.y + (side * a.h) / 2];
}
