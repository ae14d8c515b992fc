// The fabric as a Graphviz graph: tiers are ranks, links have the state of both
// ports.
import type { Topology } from '../api/client';
import { bytes, percent } from '../format';
import { portName, type Frames } from './port_states';

export function dot(t: Topology, f: Frames): string {
  const tiers = [...new Set(t.nodes.map((n) => n.tier))].sort((a, b) => b - a);
  const ranks = tiers.map((tier) => `  { rank=same; ${t.nodes.filter((n) => n.tier === tier).map((n) => quote(n.name)).join('; ')} }`);
  const nodes = t.nodes.map((n) => {
    const health = f.health.get(n.name)?.health ?? 'unknown';
    const shape = n.role === 'host' ? 'ellipse' : 'box';
    return `  ${quote(n.name)} [shape=${shape}, tooltip=${quote(`${n.role} ${n.ipv4}, ${health}`)}${health === 'failed' ? ', color=red' : health === 'degraded' ? ', color=orange' : ''}];`;
  });
  const links = t.links.map(({ a, b }) => {
    const ends = [a, b].map((r) => f.states[f.ports.ofRef(r)?.index ?? -1]);
    const load = Math.max(0, ...ends.map((s) => s?.load_share ?? 0));
    const lost = ends.reduce((sum, s) => sum + (s?.lost_packets ?? 0), 0);
    const text = ends.map((s, i) => `${portName([a, b][i]!)}: ` + (s && s.age_ms >= 0 ? `load ${percent(s.load_share)}, queue ${bytes(s.queue_bytes)}, paused ${percent(s.paused_share)}` : 'no report'));
    return `  ${quote(a.node)} -- ${quote(b.node)} [taillabel="${a.interface ?? a.port}", headlabel="${b.interface ?? b.port}", penwidth=${(1 + 4 * load).toFixed(1)}, tooltip=${quote(text.join('; '))}${lost ? `, color=red, label=${quote(`${lost} lost`)}` : ''}];`;
  });
  return `graph ${quote(t.name)} {\n  // ${f.time}\n  rankdir=TB; fontsize=10; node [fontsize=10]; edge [fontsize=8];\n${ranks.join('\n')}\n${nodes.join('\n')}\n${links.join('\n')}\n}\n`;
}

const quote = (s: string) => `"${s.replace(/["\\]/g, '\\$&')}"`;
