// The state of every port as numbers to draw. States arrive several times per
// second; the drawing interpolates between them.
import type { NodeState, PortRef, PortState, Topology } from '../api/client';

export interface Port {
  index: number;
  node: string;
  port: number;
  interface: string;
  peer: string;
  peerPort: number;
  rate: number;
}

const portKey = (node: string, port: number | string) => `${node}:${port}`;

/** portRef is the form of a port in addresses and inputs: "tor6:Ethernet8". */
export const portRef = (p: { node: string; interface?: string; port?: number }) => portKey(p.node, p.interface || (p.port ?? 0));

/** portName is the form that people read: "tor6 Ethernet8 → leaf6", or "tor6" without a port. */
export const portName = (p: { node: string; interface?: string; port?: number; peer?: string }) => [p.node, p.interface || p.port || ''].join(' ').trim() + (p.peer ? ` → ${p.peer}` : '');

/** nodeOf returns the node of a location, which is a node or a port. */
export const nodeOf = (location: string) => /^[^\s:>]+/.exec(location)?.[0] ?? '';

/** Ports indexes all ports of a fabric. */
export class Ports {
  readonly list: Port[] = [];
  readonly first: number[] = []; // index of a node's first port, by position of the node; its others follow
  readonly from: number[] = []; // position of a port's node, by index of the port
  readonly to: number[] = []; // position of its peer; -1: not in the topology
  private readonly byKey = new Map<string, number>();

  constructor(t: Topology) {
    const at = new Map(t.nodes.map((n, i) => [n.name, i]));
    for (const [i, n] of t.nodes.entries()) {
      this.first.push(this.list.length);
      for (const p of n.ports) {
        this.from.push(i);
        this.to.push(at.get(p.peer) ?? -1);
        this.byKey.set(portKey(n.name, p.port), this.list.length);
        this.byKey.set(portKey(n.name, p.interface), this.list.length);
        this.list.push({ index: this.list.length, node: n.name, port: p.port, interface: p.interface, peer: p.peer, peerPort: p.peer_port, rate: p.rate_bps });
      }
    }
  }

  find(node: string, port: number | string): Port | undefined {
    return this.parse(portKey(node, port));
  }

  ofRef(r: PortRef): Port | undefined {
    return this.find(r.node, r.interface || (r.port ?? 0));
  }

  /** parse finds a port by "node:interface" or "node:number". */
  parse(text: string): Port | undefined {
    const i = this.byKey.get(text);
    return i === undefined ? undefined : this.list[i];
  }
}

const fields = ['load', 'queue', 'paused', 'lost'] as const;
type Numbers = Record<(typeof fields)[number], Float32Array>;

function numbers(n: number): Numbers {
  return { load: new Float32Array(n), queue: new Float32Array(n), paused: new Float32Array(n), lost: new Float32Array(n) };
}

/** transitionMs is how long a value moves to the next: slightly longer than the interval of states. */
const transitionMs = 260;

/** ShownPort is the state of a port. What a switch writes of its own port has neither latency nor lost packets. */
export type ShownPort = Omit<PortState, 'latency_ns' | 'lost_packets'> & Partial<Pick<PortState, 'latency_ns' | 'lost_packets'>>;

/** Frames has the displayed values of all ports and their targets. */
export class Frames {
  readonly now: Numbers;
  readonly age: Float32Array; // ms; negative: never reported
  readonly states: (ShownPort | undefined)[];
  readonly health = new Map<string, NodeState>();
  time = '';
  private readonly from: Numbers;
  private readonly to: Numbers;
  private since = -Infinity;
  private settled = true;

  constructor(readonly ports: Ports) {
    const n = ports.list.length;
    this.now = numbers(n);
    this.from = numbers(n);
    this.to = numbers(n);
    this.age = new Float32Array(n).fill(-1);
    this.states = new Array(n);
  }

  /** apply sets a state or changes of it, immediately or as a transition that starts at a time. */
  apply(s: { time: string; nodes: NodeState[]; ports: ShownPort[] }, at?: number): void {
    this.time = s.time;
    for (const n of s.nodes) this.health.set(n.name, n);
    for (const f of fields) this.from[f].set(this.now[f]);
    for (const p of s.ports) {
      const i = this.ports.find(p.node, p.port)?.index;
      if (i === undefined) continue;
      this.to.load[i] = p.load_share;
      this.to.queue[i] = p.queue_bytes;
      this.to.paused[i] = p.paused_share;
      this.to.lost[i] = p.lost_packets ?? 0;
      this.age[i] = p.age_ms;
      this.states[i] = p;
    }
    this.since = at ?? -Infinity;
    this.settled = false;
  }

  /** advance moves the displayed values and reports whether any has changed. */
  advance(at: number): boolean {
    if (this.settled) return false;
    const t = Math.max(0, Math.min(1, (at - this.since) / transitionMs));
    for (const f of fields) {
      const now = this.now[f];
      const from = this.from[f];
      const to = this.to[f];
      for (let i = 0; i < now.length; i++) now[i] = from[i]! + (to[i]! - from[i]!) * t;
    }
    this.settled = t === 1;
    return true;
  }
}
