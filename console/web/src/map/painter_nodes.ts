// Drawing of nodes, pods and the names of tiers.
import type { Pod, Spot } from './layout';
import { queueHeat, shades, type Pen } from './pen';
import type { Scene } from './scene';
import type { Reader } from './values';

/** drawNode draws a host or a switch: red with a mark where an incident began, with an outline if it is affected and that is asked for, dashed if it is silent. */
export function drawNode(c: Pen, x: Spot, s: Scene): void {
  const { palette: t, camera: cam } = s;
  const name = x.node.name;
  const health = s.frames.health.get(name)?.health ?? 'unknown';
  const root = s.roots.nodes.get(name) ?? '';
  const degraded = s.affected && (health === 'degraded' || health === 'failed') && !root;
  const bold = s.hover.node === name || s.selected.node === name;
  const host = x.node.tier === 0;
  const path = (grow: number) => {
    c.beginPath();
    if (host) c.arc(x.x, x.y, x.w / 2 + grow, 0, 7);
    else c.roundRect(x.x - x.w / 2 - grow, x.y - x.h / 2 - grow, x.w + 2 * grow, x.h + 2 * grow, 4 + grow);
  };
  if (s.highlight.nodes.has(name) && !root) {
    c.globalAlpha = 0.35;
    c.fillStyle = t.warning;
    path(6);
    c.fill();
    c.globalAlpha = 1;
  }
  path(0);
  c.fillStyle = root ? t.critical : t.raised;
  c.fill();
  c.strokeStyle = root ? t.critical : degraded ? t.warning : bold ? t.accent : t.dim;
  c.lineWidth = Math.max(bold ? 2.4 : degraded ? 2 : 1, (bold ? 2 : 0.7) / cam.scale);
  if (health === 'unknown' && !root) c.setLineDash([3, 3]);
  c.stroke();
  c.setLineDash([]);
  // A name has the size of the node, but a readable minimum; one that does not fit is
  // below it, or omitted.
  const mark = host ? '' : root === 'critical' ? '▲ ' : root || degraded ? '◆ ' : '';
  const px = Math.max(host ? 8 : 11, 7.5 / cam.scale);
  const fits = px * 0.58 * name.length <= x.w + (host ? -2 : 4);
  const below = !fits && px * 0.58 * name.length <= x.w * 2.3;
  if (!fits && !below) return;
  c.fillStyle = root && !below ? t.panel : t.text;
  c.font = `${px}px system-ui, sans-serif`;
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  if (below) {
    c.fillText(name, x.x, x.y + x.h / 2 + px * 0.7);
    return;
  }
  const whole = px * 0.58 * (name.length + 2) < x.w ? mark : '';
  c.fillText(whole + name, x.x, x.y + 0.5, x.w - 2);
}

/** drawPod draws the frame of a pod, and its switches as cells if it is collapsed. It returns the number of cells. */
export function drawPod(c: Pen, p: Pod, s: Scene, colours: string[], values: Reader): number {
  const { palette: t, camera: cam } = s;
  const alarm = s.alarms.get(p.id);
  const bold = s.hover.pod === p.id;
  c.fillStyle = t.raised;
  c.strokeStyle = alarm ? (alarm === 'critical' ? t.critical : t.warning) : bold ? t.accent : t.line;
  c.lineWidth = Math.max(1, (alarm ? 2.4 : bold ? 1.6 : 0.7) / cam.scale);
  c.beginPath();
  c.roundRect(p.x, p.y, p.w, p.h, 8);
  c.fill();
  c.stroke();
  const px = Math.max(11, 10.5 / cam.scale);
  c.fillStyle = t.dim;
  c.font = `${px}px system-ui, sans-serif`;
  c.textAlign = 'left';
  c.textBaseline = 'top';
  // Links end at the upper edge of a collapsed pod, so its name is at the lower one. A
  // narrow one has only its number, and a low one no name, so that its cells are visible.
  const narrow = p.folded && px * 4 >= p.w;
  const title = narrow && p.id >= 0 ? String(p.id) : `${p.id < 0 ? '' : p.folded ? '▸ ' : '▾ '}${p.title}`;
  const named = p.folded ? px * 2 < p.w && px + 18 < p.h * 0.8 : px < 17;
  if (named) c.fillText(title + (alarm ? (alarm === 'critical' ? ' ▲' : ' ◆') : ''), p.x + 7, p.folded ? p.y + p.h - px - 4 : p.y + 6, p.w - 12);
  return p.folded ? drawCells(c, p, s, colours, values, p.h - (named ? px : 0) - 18) : 0;
}

/** drawCells draws each switch of a box as a cell with the values of its busiest port. */
function drawCells(c: Pen, p: Pod, s: Scene, colours: string[], values: Reader, room: number): number {
  const { palette: t, camera: cam, frames: f } = s;
  const high = room / p.rows.length;
  let drawn = 0;
  p.rows.forEach((list, j) => {
    const w = (p.w - 16) / list.length;
    list.forEach((spot, i) => {
      drawn++;
      const name = spot.node.name;
      const v = values.node(spot.first, spot.node.ports.length, f);
      const hot = queueHeat(v.queue);
      const root = s.roots.nodes.get(name) ?? '';
      const x = p.x + 8 + i * w;
      const y = p.y + 10 + j * high;
      c.fillStyle = root ? t.critical : colours[Math.min(shades - 1, Math.floor(shades * v.load))]!;
      c.fillRect(x + 1, y + 1, w - 2, high - 4);
      if (hot > 0) {
        c.fillStyle = t.text;
        c.fillRect(x + 1, y + 1 + (high - 4) * (1 - hot), Math.min(3, w / 4), (high - 4) * hot);
      }
      const sign = root ? (root === 'critical' ? '▲' : '◆') : v.paused > 0.02 ? '‖' : s.affected && f.health.get(name)?.health === 'degraded' ? '◆' : '';
      if (sign && high * cam.scale > 7) {
        c.fillStyle = root ? t.panel : t.text;
        c.font = `bold ${Math.min(high * 0.5, w * 0.8)}px system-ui, sans-serif`;
        c.textAlign = 'center';
        c.textBaseline = 'middle';
        c.fillText(sign, x + w / 2, y + high / 2 - 1);
      }
      if (s.highlight.nodes.has(name)) {
        c.strokeStyle = t.warning;
        c.lineWidth = 2 / cam.scale;
        c.beginPath();
        c.roundRect(x, y, w, high - 2, 2);
        c.stroke();
      }
    });
  });
  return drawn;
}

/** drawTiers draws the names of the tiers at the left edge of the screen. */
export function drawTiers(c: Pen, { layout, camera: cam, palette: t, size }: Scene): void {
  if (size.w < 500) return; // they would cover nodes
  c.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  c.font = '11px system-ui, sans-serif';
  c.textAlign = 'left';
  c.textBaseline = 'middle';
  for (const tier of layout.tiers) {
    const y = (tier.y - cam.y) * cam.scale;
    const w = c.measureText(tier.title).width;
    c.fillStyle = t.panel;
    c.globalAlpha = 0.85;
    c.fillRect(6, y - 8, w + 8, 16);
    c.globalAlpha = 1;
    c.fillStyle = t.dim;
    c.fillText(tier.title, 10, y);
  }
}
