// What every port does, as numbers to draw. States come some times a second;
// what is shown glides from one to the next, so that eyes can follow.
import type { NodeState, PortState, Topology } from '../api/client';

export interface Port {
  index: number;
  node: string;
  port: number;
  name: string;
  peer: string;
  peerPort: number;
  rate: number;
}

export const portKey = (node: string, port: number) => `${node}:${port}`;

/** Ports numbers all ports of a fabric. */
export class Ports {
  readonly list: Port[] = [];
  private readonly byKey = new Map<string, number>();

  constructor(t: Topology) {
    for (const n of t.nodes) {
      for (const p of n.ports) {
        this.byKey.set(portKey(n.name, p.port), this.list.length);
        this.list.push({ index: this.list.length, node: n.name, port: p.port, name: p.name, peer: p.peer, peerPort: p.peer_port, rate: p.rate_bps });
      }
    }
  }

  find(node: string, port: number): Port | undefined {
    const i = this.byKey.get(portKey(node, port));
    return i === undefined ? undefined : this.list[i];
  }
}

const fields = ['load', 'queue', 'paused', 'lost'] as const;
type Numbers = Record<(typeof fields)[number], Float32Array>;

function numbers(n: number): Numbers {
  return { load: new Float32Array(n), queue: new Float32Array(n), paused: new Float32Array(n), lost: new Float32Array(n) };
}

/** glide is how long a value takes to its next: a bit more than between two states. */
const glide = 260;

/** Frames holds the present values of all ports and where they are going. */
export class Frames {
  readonly now: Numbers;
  readonly age: Float32Array; // ms; below 0: never heard of
  readonly states: (PortState | undefined)[];
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

  /** apply takes a state or the changes to one; at once, or gliding from at. */
  apply(s: { time: string; nodes: NodeState[]; ports: PortState[] }, at?: number): void {
    this.time = s.time;
    for (const n of s.nodes) this.health.set(n.name, n);
    for (const f of fields) this.from[f].set(this.now[f]);
    for (const p of s.ports) {
      const i = this.ports.find(p.node, p.port)?.index;
      if (i === undefined) continue;
      this.to.load[i] = p.load_share;
      this.to.queue[i] = p.queue_bytes;
      this.to.paused[i] = p.paused_share;
      this.to.lost[i] = p.lost_packets;
      this.age[i] = p.age_ms;
      this.states[i] = p;
    }
    this.since = at ?? -Infinity;
    this.settled = false;
  }

  /** advance moves values on and tells whether any has moved. */
  advance(at: number): boolean {
    if (this.settled) return false;
    const t = Math.max(0, Math.min(1, (at - this.since) / glide));
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
