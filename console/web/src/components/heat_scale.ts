// Absolute scales of heat maps: a colour means the same value in every range, so a
// quiet fabric looks quiet.
import type { PortRef } from '../api/client';
import { queueHeat } from '../map/pen';
import type { Ports } from '../map/port_states';

export interface Scale {
  heat: (value: number, port: PortRef) => number; // 0 to 1
  low: string;
  high: string;
}

/** latencyHeat maps a latency to 0 to 1 on a logarithmic scale: 1 µs is 0, 1 ms is 1. */
const latencyHeat = (ns: number) => (ns < 1000 ? 0 : Math.min(1, Math.log10(ns / 1000) / 3));

export function scales(ports: Ports): Record<'queue_bytes' | 'load_bps' | 'latency_ns' | 'paused_share', Scale> {
  return {
    queue_bytes: { heat: queueHeat, low: '1 kB', high: '2 MB' },
    load_bps: { heat: (v, p) => Math.min(1, v / (ports.ofRef(p)?.rate || 1)), low: '0', high: 'link rate' },
    latency_ns: { heat: latencyHeat, low: '1 µs', high: '1 ms' },
    paused_share: { heat: (v) => Math.min(1, v), low: '0', high: 'always' },
  };
}
