// Drawing of the fabric. Colour never carries meaning alone: load is also width, a
// pause is also dashes, a queue is also the size of a disc, a loss is also a cross or
// a tick, and the health of a node is also a mark. Red is a root cause.
import type { Half } from './layout';
import { drawNode, drawPod, drawTiers } from './painter_nodes';
import { queueHeat, ramp, shades, unit, type Pen } from './pen';
import type { Scene } from './scene';
import { Reader } from './values';

type Seen = (x1: number, y1: number, x2: number, y2: number) => boolean;

export class Painter {
  private colours: string[] = [];
  private dark: boolean | undefined;
  private readonly buckets: Half[][] = Array.from({ length: shades }, () => []);
  readonly values = new Reader();
  /** drawn is the number of elements of the last drawing: nodes, cells of boxes, halves of links. */
  drawn = 0;

  draw(c: Pen, s: Scene): void {
    const { layout: l, camera: cam, palette: t, highlight: high, hover, selected, size } = s;
    this.drawn = 0;
    if (this.dark !== t.dark) [this.dark, this.colours] = [t.dark, ramp(t.dark)];
    const k = size.ratio;
    c.setTransform(k, 0, 0, k, 0, 0);
    c.fillStyle = t.panel;
    c.fillRect(0, 0, size.w, size.h);
    c.setTransform(cam.scale * k, 0, 0, cam.scale * k, -cam.x * cam.scale * k, -cam.y * cam.scale * k);
    const view = { x1: cam.x, y1: cam.y, x2: cam.x + size.w / cam.scale, y2: cam.y + size.h / cam.scale };
    const seen: Seen = (x1, y1, x2, y2) => Math.max(x1, x2) >= view.x1 && Math.min(x1, x2) <= view.x2 && Math.max(y1, y2) >= view.y1 && Math.min(y1, y2) <= view.y2;
    for (const list of [l.pods, l.groups]) for (const p of list) if (p.id !== -1 && seen(p.x, p.y, p.x + p.w, p.y + p.h)) this.drawn += drawPod(c, p, s, this.colours, this.values);
    this.halo(c, s);
    this.links(c, s, seen);
    this.rootLinks(c, s);
    this.drawPath(c, s, high.path, t.path, []);
    this.drawPath(c, s, high.cycle, t.cycle, [7 / cam.scale, 4 / cam.scale]);
    this.marks(c, s, seen);
    this.ring(c, s, hover.bundle);
    for (const p of [hover.port, selected.port]) this.ring(c, s, p === undefined ? undefined : l.halves[p]);
    for (const x of l.visible) {
      if (!seen(x.x - x.w, x.y - x.h, x.x + x.w, x.y + x.h)) continue;
      this.drawn++;
      drawNode(c, x, s);
    }
    drawTiers(c, s);
  }

  private links(c: Pen, { layout: l, frames: f, camera: cam, palette: t }: Scene, seen: Seen): void {
    for (const b of this.buckets) b.length = 0;
    const paused: Half[] = [];
    const silent: Half[] = [];
    for (const h of l.shown) {
      if (!seen(h.x1, h.y1, h.x2, h.y2)) continue;
      this.drawn++;
      const v = this.values.half(h, f);
      if (v.age < 0) silent.push(h);
      else if (v.paused > 0.02) paused.push(h);
      else this.buckets[Math.min(shades - 1, Math.floor(v.load * shades))]!.push(h);
    }
    const least = 1 / cam.scale;
    const stroke = (list: Half[], colour: string, width: number) => {
      if (!list.length) return;
      c.strokeStyle = colour;
      c.lineWidth = width;
      // A single path of crossing lines costs quadratic time, so each line is a
      // separate path.
      for (const h of list) {
        c.beginPath();
        c.moveTo(h.x1, h.y1);
        c.lineTo(h.x2, h.y2);
        c.stroke();
      }
    };
    c.lineCap = 'butt';
    stroke(silent, t.line, least);
    const many = l.shown.length > 1500;
    this.buckets.forEach((list, i) => {
      if (many) c.globalAlpha = i < shades / 4 ? 0.3 : i < shades / 2 ? 0.6 : 1; // emphasize busy links
      stroke(list, this.colours[i]!, width(i / shades, least));
    });
    c.globalAlpha = 1;
    for (const h of paused) {
      const v = this.values.half(h, f);
      c.setLineDash([3 + 6 * (1 - v.paused), 2 + 5 * v.paused]);
      stroke([h], t.path, Math.max(width(v.load, least), 2.2));
    }
    c.setLineDash([]);
  }

  /** rootLinks draws the ports where incidents began. */
  private rootLinks(c: Pen, { layout: l, camera: cam, palette: t, roots }: Scene): void {
    c.strokeStyle = t.critical;
    c.lineCap = 'round';
    c.lineWidth = Math.max(6, 3.5 / cam.scale);
    for (const p of roots.ports) {
      const h = l.halves[p];
      if (!h) continue;
      c.beginPath();
      c.moveTo(h.x1, h.y1);
      c.lineTo(h.x2, h.y2);
      c.stroke();
    }
    c.lineCap = 'butt';
  }

  /** marks draws queues, pauses and losses at their ports. */
  private marks(c: Pen, s: Scene, seen: Seen): void {
    const { layout: l, frames: f, camera: cam, palette: t } = s;
    const least = Math.max(1, 0.55 / cam.scale);
    for (const h of l.shown) {
      if (!seen(h.x1, h.y1, h.x2, h.y2)) continue;
      const { queue, paused, lost } = this.values.half(h, f);
      const hot = queueHeat(queue);
      if (hot <= 0 && paused <= 0.02 && lost < 0.5) continue;
      const [dx, dy] = unit(h);
      if (hot > 0) {
        const r = (2 + 5 * hot) * least;
        c.fillStyle = this.colours[Math.min(shades - 1, Math.floor(shades * (0.35 + 0.65 * hot)))]!;
        c.beginPath();
        c.arc(h.x1 + dx * (r + 1), h.y1 + dy * (r + 1), r, 0, 7);
        c.fill();
        c.strokeStyle = t.panel;
        c.lineWidth = 0.8 * least;
        c.stroke();
      }
      if (paused > 0.02) {
        const x = h.x1 + dx * 17 * least;
        const y = h.y1 + dy * 17 * least;
        c.fillStyle = t.panel;
        c.strokeStyle = t.path;
        c.lineWidth = 1.2 * least;
        c.beginPath();
        c.arc(x, y, 5 * least, 0, 7);
        c.fill();
        c.stroke();
        c.fillStyle = t.path;
        c.fillRect(x - 2.2 * least, y - 2.4 * least, 1.5 * least, 4.8 * least);
        c.fillRect(x + 0.7 * least, y - 2.4 * least, 1.5 * least, 4.8 * least);
      }
      if (lost >= 0.5) this.loss(c, s, h, least);
    }
  }

  /** loss draws a red cross where an incident says that packets are lost, and a grey tick for drops that switches counted. */
  private loss(c: Pen, { palette: t, roots, frames: f }: Scene, h: Half, least: number): void {
    const ports = h.ports ?? [h.port.index];
    const red = ports.some((i) => roots.lossy.has(f.ports.list[i]!.node) || roots.ports.has(i));
    const x = h.x1 + (h.x2 - h.x1) * 0.72;
    const y = h.y1 + (h.y2 - h.y1) * 0.72;
    const [dx, dy] = unit(h);
    const r = (red ? 4.5 : 4) * least;
    const strokes: [number, number][] = red ? [[-r, -r], [-r, r]] : [[-dy * r, dx * r]];
    for (const [colour, line] of [[t.panel, (red ? 4.4 : 3.4) * least], [red ? t.critical : t.dim, (red ? 2.2 : 1.4) * least]] as const) {
      c.strokeStyle = colour;
      c.lineWidth = line;
      c.beginPath();
      for (const [a, b] of strokes) {
        c.moveTo(x + a, y + b);
        c.lineTo(x - a, y - b);
      }
      c.stroke();
    }
  }

  private halo(c: Pen, { layout: l, camera: cam, palette: t, highlight }: Scene): void {
    c.globalAlpha = 0.28;
    c.strokeStyle = t.warning;
    c.lineCap = 'round';
    c.lineWidth = Math.max(11, 6 / cam.scale);
    c.beginPath();
    for (const p of highlight.links) {
      const h = l.halves[p];
      if (!h) continue;
      c.moveTo(h.x1, h.y1);
      c.lineTo(h.x2, h.y2);
    }
    c.stroke();
    c.globalAlpha = 1;
  }

  /** drawPath draws the links of ports in order, with arrows. */
  private drawPath(c: Pen, { layout: l, camera: cam }: Scene, ports: readonly number[], colour: string, dash: number[]): void {
    const w = Math.max(3, 2.4 / cam.scale);
    c.strokeStyle = c.fillStyle = colour;
    for (const p of ports) {
      const h = l.halves[p];
      if (!h) continue;
      const x = h.x1 + (h.x2 - h.x1) * 2;
      const y = h.y1 + (h.y2 - h.y1) * 2;
      const [dx, dy] = unit(h);
      c.lineWidth = w;
      c.setLineDash(dash);
      c.beginPath();
      c.moveTo(h.x1, h.y1);
      c.lineTo(x - dx * w * 2, y - dy * w * 2);
      c.stroke();
      c.setLineDash([]);
      const mx = h.x2 + dx * w * 2.4;
      const my = h.y2 + dy * w * 2.4;
      c.beginPath();
      c.moveTo(mx, my);
      c.lineTo(mx - dx * w * 4.5 - dy * w * 2.4, my - dy * w * 4.5 + dx * w * 2.4);
      c.lineTo(mx - dx * w * 4.5 + dy * w * 2.4, my - dy * w * 4.5 - dx * w * 2.4);
      c.fill();
    }
  }

  private ring(c: Pen, { camera: cam, palette: t }: Scene, h: Half | undefined): void {
    if (!h) return;
    c.strokeStyle = t.accent;
    c.lineWidth = 2 / cam.scale;
    const [dx, dy] = unit(h);
    const off = 6 / cam.scale;
    c.beginPath();
    for (const s of [-1, 1]) {
      c.moveTo(h.x1 - dy * off * s, h.y1 + dx * off * s);
      c.lineTo(h.x2 - dy * off * s, h.y2 + dx * off * s);
    }
    c.stroke();
  }
}

const width = (load: number, least: number) => Math.max(least, 0.9 + 5.2 * Math.sqrt(load));
