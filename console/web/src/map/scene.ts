// What a drawing of the fabric shows, beside the states of ports.
import type { Incident } from '../api/client';
import type { Half, Layout } from './layout';
import type { Camera, Palette } from './pen';
import { nodeOf, type Frames, type Ports } from './port_states';

/** Highlight is what an incident, a flow or a trace highlights on the map. */
export interface Highlight {
  nodes: ReadonlySet<string>;
  links: ReadonlySet<number>; // ports
  path: readonly number[]; // ports of a PFC propagation path or a packet path, in order
  cycle: readonly number[]; // ports of a deadlock cycle or a forwarding loop
}
export const noHighlight: Highlight = { nodes: new Set(), links: new Set(), path: [], cycle: [] };

export interface Selection {
  node?: string;
  port?: number;
  pod?: number;
  bundle?: Half;
}

/** Alarms has the severity of the worst open incident in a pod or a box of the top tier, by its id. */
export type Alarms = ReadonlyMap<number, string>;
export const noAlarms: Alarms = new Map();

/** Roots are the places where incidents began: the root causes, which are red. */
export interface Roots {
  nodes: ReadonlyMap<string, string>; // severity by name
  ports: ReadonlySet<number>;
  lossy: ReadonlySet<string>; // nodes whose incident is packets lost without a counter
}
export const noRoots: Roots = { nodes: new Map(), ports: new Set(), lossy: new Set() };

const lossCauses = new Set(['loss', 'blackhole', 'loop', 'wrong-route']);

/** rootsOf returns the roots of incidents, the most severe of each node. */
export function rootsOf(ports: Ports, incidents: readonly Pick<Incident, 'location' | 'severity' | 'cause'>[]): Roots {
  if (!incidents.length) return noRoots;
  const nodes = new Map<string, string>();
  const lossy = new Set<string>();
  const found = new Set<number>();
  for (const i of incidents) {
    const node = nodeOf(i.location);
    if (nodes.get(node) !== 'critical') nodes.set(node, i.severity);
    if (lossCauses.has(i.cause)) lossy.add(node);
    const port = ports.parse(i.location);
    if (port) found.add(port.index);
  }
  return { nodes, ports: found, lossy };
}

/** Scene is everything that a drawing needs. */
export interface Scene {
  layout: Layout;
  frames: Frames;
  camera: Camera;
  palette: Palette;
  highlight: Highlight;
  roots: Roots;
  alarms: Alarms;
  affected: boolean; // show nodes that incidents affect
  hover: Selection;
  selected: Selection;
  size: { w: number; h: number; ratio: number };
}
