// The fabric as a graph for Graphviz: tiers as ranks, links with what both of
// their ports do.
import type { Topology } from '../api/client';
import { bytes, percent } from '../format';
import type { Frames } from './frames';

export function dot(t: Topology, f: Frames): string {
  const tiers = [...new Set(t.nodes.map((n) => n.tier))].sort((a, b) => b - a);
  const ranks = tiers.map((tier) => `  { rank=same; ${t.nodes.filter((n) => n.tier === tier).map((n) => quote(n.name)).join('; ')} }`);
  const nodes = t.nodes.map((n) => {
    const health = f.health.get(n.name)?.health ?? 'unknown';
    const shape = n.role === 'host' ? 'circle' : 'box';
    return `  ${quote(n.name)} [shape=${shape}, tooltip=${quote(`${n.role} ${n.ipv4}, ${health}`)}${health === 'failed' ? ', color=red' : health === 'degraded' ? ', color=orange' : ''}];`;
  });
  const links = t.links.map(({ a, b }) => {
    const ends = [a, b].map((r) => f.states[f.ports.find(r.node, r.port)?.index ?? -1]);
    const load = Math.max(0, ...ends.map((s) => s?.load_share ?? 0));
    const lost = ends.reduce((sum, s) => sum + (s?.lost_packets ?? 0), 0);
    const say = ends.map((s, i) => `${[a, b][i]!.node}:${[a, b][i]!.port} ` + (s && s.age_ms >= 0 ? `load ${percent(s.load_share)}, queue ${bytes(s.queue_bytes)}, paused ${percent(s.paused_share)}` : 'not heard of'));
    return `  ${quote(a.node)} -- ${quote(b.node)} [taillabel="${a.port}", headlabel="${b.port}", penwidth=${(1 + 4 * load).toFixed(1)}, tooltip=${quote(say.join('; '))}${lost ? `, color=red, label=${quote(`${lost} lost`)}` : ''}];`;
  });
  return `graph ${quote(t.name)} {\n  // ${f.time}\n  rankdir=TB; fontsize=10; node [fontsize=10]; edge [fontsize=8];\n${ranks.join('\n')}\n${nodes.join('\n')}\n${links.join('\n')}\n}\n`;
}

const quote = (s: string) => `"${s.replace(/["\\]/g, '\\$&')}"`;
