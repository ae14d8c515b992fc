// Layered layout of a PFC provenance graph: a waiting port or flow is left of what
// it waits for. Cycles are broken at the edge that closes them. Within a column,
// boxes are ordered by their neighbours.
import type { Graph } from '../api/client';
import { portName, portRef, type Ports } from '../map/port_states';
import { format3, percent } from '../format';

export interface Box {
  id: string;
  kind: 'port' | 'flow';
  x: number;
  y: number;
  w: number;
  h: number;
  title: string;
  note: string;
  classes: string; // of the drawing
  ref: string; // what a click opens: a port or a flow key
}

export interface Line {
  path: string;
  x: number; // of the label
  y: number;
  low: number; // its lowest point
  label: string;
  weight: number; // 0 to 1, relative to the heaviest edge of its kind
  classes: string;
  title: string;
}

export interface Drawing {
  boxes: Box[];
  lines: Line[];
  w: number;
  h: number;
  hidden: number; // flows that are not shown
}

const portW = 232;
const portH = 44;
const flowW = 124;
const flowH = 26;
const gapX = 96;
const gapY = 12;

/** layoutGraph places ports and the flows with a role, or all flows. */
export function layoutGraph(g: Graph, all: boolean, ports: Ports): Drawing {
  const shown = g.flows.filter((f) => all || f.role !== 'other');
  const boxes: Box[] = [
    ...g.ports.map((p): Box => ({
      id: 'port ' + p.id, kind: 'port', x: 0, y: 0, w: portW, h: portH, title: portName(ports.find(p.node, p.port) ?? p),
      note: `${p.paused_packets} of ${p.packets} packets paused · queue ${format3(p.depth_packets)} packets`,
      classes: [p.initial && 'initial', p.in_cycle && 'cycle', p.in_path && 'path', p.paused && 'paused'].filter(Boolean).join(' '),
      ref: portRef(ports.find(p.node, p.port) ?? p),
    })),
    ...shown.map((f): Box => ({
      id: 'flow ' + f.id, kind: 'flow', x: 0, y: 0, w: flowW, h: flowH, title: f.src && f.dst ? `${f.src} → ${f.dst}` : f.id,
      note: f.role, classes: f.role, ref: f.flow,
    })),
  ];
  const index = new Map(boxes.map((b, i) => [b.id, i]));
  const ends = (e: Graph['edges'][number]) => {
    const [from, to] = e.kind === 'flow-port' ? ['flow ', 'port '] : e.kind === 'port-flow' ? ['port ', 'flow '] : ['port ', 'port '];
    return [index.get(from + e.from), index.get(to + e.to)] as const;
  };
  const edges = g.edges.flatMap((e) => {
    const [a, b] = ends(e);
    return a === undefined || b === undefined ? [] : [{ e, a, b }];
  });

  const rank = ranks(boxes.length, edges.map(({ a, b }) => [a, b] as const));
  // A flow that only waits is next to what it waits for.
  boxes.forEach((b, i) => {
    const out = edges.filter((x) => x.a === i);
    if (b.kind === 'flow' && out.length && !edges.some((x) => x.b === i)) rank[i] = Math.min(...out.map((x) => rank[x.b]!)) - 1;
  });
  const least = Math.min(0, ...rank);
  const columns: number[][] = [];
  rank.forEach((r, i) => (columns[r - least] ??= []).push(i));
  order(columns, edges.map(({ a, b }) => [a, b] as const), boxes.length);

  const high = (col: number[]) => col.reduce((sum, i) => sum + boxes[i]!.h + gapY, -gapY);
  const h = Math.max(0, ...columns.filter(Boolean).map(high)) + 48;
  let x = 24;
  for (const col of columns) {
    if (!col) continue;
    const w = Math.max(...col.map((i) => boxes[i]!.w));
    let y = (h - high(col)) / 2;
    for (const i of col) {
      const b = boxes[i]!;
      b.x = x + (w - b.w) / 2;
      b.y = y;
      y += b.h + gapY;
    }
    x += w + gapX;
  }
  const heaviest = new Map<string, number>();
  for (const { e } of edges) heaviest.set(e.kind, Math.max(heaviest.get(e.kind) ?? 0, Math.abs(e.weight)));
  const waits = new Map<string, number>(); // of each paused port, for all ports
  for (const { e } of edges) if (e.kind === 'port-port') waits.set(e.from, (waits.get(e.from) ?? 0) + e.weight);
  const lines = edges.map(({ e, a, b }) => line(boxes[a]!, boxes[b]!, e, Math.abs(e.weight) / (heaviest.get(e.kind) || 1), edgeText(e, waits.get(e.from) ?? 0)));
  // A label that would overlap a box is only in the title of the line.
  for (const l of lines) if (boxes.some((b) => l.x > b.x - 10 && l.x < b.x + b.w + 10 && l.y > b.y - 2 && l.y < b.y + b.h + 8)) l.label = '';
  const lowest = Math.max(h, ...lines.map((l) => l.low + 16));
  return { boxes, lines, w: Math.max(x - gapX + 24, 200), h: lowest, hidden: g.flows.length - shown.length };
}

/** ranks returns the longest path to each box, without the edges that close cycles. */
function ranks(n: number, edges: (readonly [number, number])[]): number[] {
  const out: number[][] = Array.from({ length: n }, () => []);
  for (const [a, b] of edges) if (a !== b) out[a]!.push(b);
  const state = new Uint8Array(n); // 1: being visited, 2: done
  const done: number[] = [];
  const kept: number[][] = Array.from({ length: n }, () => []);
  const visit = (i: number) => {
    state[i] = 1;
    for (const j of out[i]!) {
      if (state[j] === 1) continue; // closes a cycle
      kept[i]!.push(j);
      if (!state[j]) visit(j);
    }
    state[i] = 2;
    done.push(i);
  };
  for (let i = 0; i < n; i++) if (!state[i]) visit(i);
  const rank = new Array<number>(n).fill(0);
  for (const i of done.reverse()) for (const j of kept[i]!) rank[j] = Math.max(rank[j]!, rank[i]! + 1);
  return rank;
}

/** order sorts each column by the mean position of its neighbours, in alternating sweeps. */
function order(columns: number[][], edges: (readonly [number, number])[], n: number): void {
  const near: number[][] = Array.from({ length: n }, () => []);
  for (const [a, b] of edges) {
    near[a]!.push(b);
    near[b]!.push(a);
  }
  const position = new Array<number>(n).fill(0);
  const settle = (col: number[]) => col.forEach((i, k) => (position[i] = (k + 0.5) / col.length));
  columns.forEach((c) => c && settle(c));
  for (let sweep = 0; sweep < 6; sweep++) {
    const list = sweep % 2 ? [...columns].reverse() : columns;
    for (const col of list) {
      if (!col) continue;
      const want = new Map(col.map((i) => [i, near[i]!.length ? near[i]!.reduce((s, j) => s + position[j]!, 0) / near[i]!.length : position[i]!]));
      col.sort((a, b) => want.get(a)! - want.get(b)!);
      settle(col);
    }
  }
}

/** edgeText is the weight of an edge with its unit. */
function edgeText(e: Graph['edges'][number], waits: number): string {
  switch (e.kind) {
    case 'flow-port': return `${format3(e.weight)} paused`; // packets of the flow
    case 'port-port': return waits > 0 ? percent(e.weight / waits) : ''; // of what the port waits for
    default: return `${e.weight > 0 ? '+' : '−'}${format3(Math.abs(e.weight))} pkt`; // of the queue
  }
}

function line(a: Box, b: Box, e: Graph['edges'][number], weight: number, label: string): Line {
  const back = b.x + b.w <= a.x || a === b;
  const [x1, y1] = [a.x + a.w, a.y + a.h / 2];
  const [x2, y2] = [b.x, b.y + b.h / 2];
  const victim = e.kind === 'port-flow' && e.weight < 0;
  const classes = e.kind + (victim ? ' victim' : '') + (a.classes.includes('cycle') && b.classes.includes('cycle') ? ' cycle' : a.classes.includes('path') && b.classes.includes('path') ? ' path' : '');
  const title = {
    'flow-port': `${label} packets of ${a.title} at ${b.title}`,
    'port-port': `${a.title} waits for ${b.title}: ${label} of its waiting`,
    'port-flow': victim ? `${b.title} waits at ${a.title} behind ${format3(-e.weight)} packets of others` : `${b.title} keeps ${format3(e.weight)} packets of others waiting at ${a.title}`,
  }[e.kind];
  if (back) {
    const dip = Math.max(a.y + a.h, b.y + b.h) + 26;
    return { path: `M${a.x + a.w / 2} ${a.y + a.h}C${a.x + a.w / 2} ${dip + 20} ${b.x + b.w / 2} ${dip + 20} ${b.x + b.w / 2} ${b.y + b.h + 5}`, x: (a.x + a.w / 2 + b.x + b.w / 2) / 2, y: dip + 8, low: dip + 12, label, weight, classes, title };
  }
  const mid = Math.max(30, (x2 - x1) / 2);
  return { path: `M${x1} ${y1}C${x1 + mid} ${y1} ${x2 - mid} ${y2} ${x2 - 4} ${y2}`, x: x2 - 30, y: y2 + (y1 - y2) * 0.12 - 3, low: Math.max(y1, y2), label, weight, classes, title };
}
