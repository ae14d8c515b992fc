// Drawing of the fabric. Colour never carries meaning alone: load is also width, a
// pause is also dashes, a queue is also the size of a disc, a loss is also a cross,
// and the health of a node is also a mark.
import type { Frames } from './port_states';
import type { Half, Layout, Pod, Spot } from './layout';

/** Pen is the part of a canvas context that Painter uses; svg_pen.ts implements it for SVG. */
export interface Pen extends Pick<CanvasRenderingContext2D, 'fillStyle' | 'strokeStyle' | 'lineWidth' | 'lineCap' | 'globalAlpha' | 'font' | 'textAlign' | 'textBaseline'> {
  setTransform(a: number, b: number, c: number, d: number, e: number, f: number): void;
  setLineDash(list: number[]): void;
  beginPath(): void;
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  arc(x: number, y: number, r: number, from: number, to: number): void;
  roundRect(x: number, y: number, w: number, h: number, r: number): void;
  stroke(): void;
  fill(): void;
  fillRect(x: number, y: number, w: number, h: number): void;
  fillText(text: string, x: number, y: number, most?: number): void;
  measureText(text: string): { width: number };
}

export interface Camera {
  x: number;
  y: number;
  scale: number;
}

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

export interface Palette {
  panel: string;
  raised: string;
  line: string;
  text: string;
  dim: string;
  accent: string;
  critical: string;
  warning: string;
  path: string;
  cycle: string;
  dark: boolean;
}

const shades = 24;
const stops: Record<'light' | 'dark', [number, number[]][]> = {
  light: [[0, [186, 196, 206]], [0.2, [92, 160, 196]], [0.5, [45, 110, 160]], [0.75, [214, 137, 16]], [1, [183, 28, 28]]],
  dark: [[0, [58, 72, 86]], [0.2, [62, 128, 164]], [0.5, [98, 178, 220]], [0.75, [240, 176, 60]], [1, [255, 106, 92]]],
};

/** ramp returns the colours from idle to full load. */
export function ramp(dark: boolean, n = shades): string[] {
  const list = stops[dark ? 'dark' : 'light'];
  return Array.from({ length: n }, (_, i) => {
    const v = i / (n - 1);
    const k = Math.max(1, list.findIndex(([at]) => at >= v));
    const [a, from] = list[k - 1]!;
    const [b, to] = list[k]!;
    const t = (v - a) / (b - a);
    return `rgb(${from.map((c, j) => Math.round(c + (to[j]! - c) * t)).join(' ')})`;
  });
}

/** queueHeat maps a queue to 0 to 1 on a logarithmic scale: 1 kB is 0, 2 MB is 1. */
export const queueHeat = (queue: number) => (queue < 1000 ? 0 : Math.min(1, Math.log10(queue / 1000) / 3.3));

/** Values are what is drawn of a port, or of several. */
interface Values {
  age: number;
  load: number;
  queue: number;
  paused: number;
  lost: number;
}

export class Painter {
  private colours: string[] = [];
  private dark: boolean | undefined;
  private readonly buckets: Half[][] = Array.from({ length: shades }, () => []);
  /** drawn is the number of elements of the last drawing: nodes, cells of boxes, halves of links. */
  drawn = 0;

  draw(c: Pen, l: Layout, f: Frames, cam: Camera, t: Palette, high: Highlight, alarms: Alarms, hover: Selection, chosen: Selection, size: { w: number; h: number; ratio: number }): void {
    this.drawn = 0;
    if (this.dark !== t.dark) [this.dark, this.colours] = [t.dark, ramp(t.dark)];
    const k = size.ratio;
    c.setTransform(k, 0, 0, k, 0, 0);
    c.fillStyle = t.panel;
    c.fillRect(0, 0, size.w, size.h);
    c.setTransform(cam.scale * k, 0, 0, cam.scale * k, -cam.x * cam.scale * k, -cam.y * cam.scale * k);
    const view = { x1: cam.x, y1: cam.y, x2: cam.x + size.w / cam.scale, y2: cam.y + size.h / cam.scale };
    const seen = (x1: number, y1: number, x2: number, y2: number) =>
      Math.max(x1, x2) >= view.x1 && Math.min(x1, x2) <= view.x2 && Math.max(y1, y2) >= view.y1 && Math.min(y1, y2) <= view.y2;
    for (const list of [l.pods, l.groups]) for (const p of list) if (p.id !== -1 && seen(p.x, p.y, p.x + p.w, p.y + p.h)) this.pod(c, p, f, cam, t, high, alarms.get(p.id), hover.pod === p.id);
    this.halo(c, l, t, high, cam);
    this.links(c, l, f, cam, t, seen);
    this.drawPath(c, l, high.path, t.path, cam, []);
    this.drawPath(c, l, high.cycle, t.cycle, cam, [7 / cam.scale, 4 / cam.scale]);
    this.marks(c, l, f, cam, t, seen);
    this.ring(c, hover.bundle, cam, t);
    for (const p of [hover.port, chosen.port]) this.ring(c, p === undefined ? undefined : l.halves[p], cam, t);
    for (const s of l.visible) if (seen(s.x - s.w, s.y - s.h, s.x + s.w, s.y + s.h)) this.node(c, s, f, cam, t, high, hover.node === s.node.name || chosen.node === s.node.name);
    this.tiers(c, l, cam, t, k);
  }

  private links(c: Pen, l: Layout, f: Frames, cam: Camera, t: Palette, seen: (a: number, b: number, x: number, y: number) => boolean): void {
    for (const b of this.buckets) b.length = 0;
    const paused: Half[] = [];
    const silent: Half[] = [];
    for (const h of l.shown) {
      if (!seen(h.x1, h.y1, h.x2, h.y2)) continue;
      this.drawn++;
      const v = this.read(h, f);
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
      stroke(list, this.colours[i]!, this.wide(i / shades, least));
    });
    c.globalAlpha = 1;
    for (const h of paused) {
      const v = this.read(h, f);
      c.setLineDash([3 + 6 * (1 - v.paused), 2 + 5 * v.paused]);
      stroke([h], t.path, Math.max(this.wide(v.load, least), 2.2));
    }
    c.setLineDash([]);
  }

  /** read returns the values of a port, or of a bundle: of its busiest port, deepest queue and longest pause, and the sum of losses. The result is reused. */
  read(h: Half, f: Frames): Values {
    const v = this.values;
    [v.age, v.load, v.queue, v.paused, v.lost] = [-1, 0, 0, 0, 0];
    if (!h.ports) this.gather(v, h.port.index, f);
    else for (const i of h.ports) this.gather(v, i, f);
    return v;
  }
  private readonly values: Values = { age: -1, load: 0, queue: 0, paused: 0, lost: 0 };

  private gather(v: Values, i: number, f: Frames): void {
    v.age = Math.max(v.age, f.age[i]!);
    v.load = Math.max(v.load, f.now.load[i]!);
    v.queue = Math.max(v.queue, f.now.queue[i]!);
    v.paused = Math.max(v.paused, f.now.paused[i]!);
    v.lost += f.now.lost[i]!;
  }

  private wide(load: number, least: number): number {
    return Math.max(least, 0.9 + 5.2 * Math.sqrt(load));
  }

  /** marks draws queues, pauses and losses at their ports. */
  private marks(c: Pen, l: Layout, f: Frames, cam: Camera, t: Palette, seen: (a: number, b: number, x: number, y: number) => boolean): void {
    const least = Math.max(1, 0.55 / cam.scale);
    for (const h of l.shown) {
      if (!seen(h.x1, h.y1, h.x2, h.y2)) continue;
      const { queue, paused, lost } = this.read(h, f);
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
      if (lost >= 0.5) {
        const x = h.x1 + (h.x2 - h.x1) * 0.72;
        const y = h.y1 + (h.y2 - h.y1) * 0.72;
        const r = 4.5 * least;
        for (const [colour, width] of [[t.panel, 4.4 * least], [t.critical, 2.2 * least]] as const) {
          c.strokeStyle = colour;
          c.lineWidth = width;
          c.beginPath();
          c.moveTo(x - r, y - r);
          c.lineTo(x + r, y + r);
          c.moveTo(x - r, y + r);
          c.lineTo(x + r, y - r);
          c.stroke();
        }
      }
    }
  }

  private halo(c: Pen, l: Layout, t: Palette, high: Highlight, cam: Camera): void {
    c.globalAlpha = 0.28;
    c.strokeStyle = t.warning;
    c.lineCap = 'round';
    c.lineWidth = Math.max(11, 6 / cam.scale);
    c.beginPath();
    for (const p of high.links) {
      const h = l.halves[p];
      if (!h) continue;
      c.moveTo(h.x1, h.y1);
      c.lineTo(h.x2, h.y2);
    }
    c.stroke();
    c.globalAlpha = 1;
  }

  /** drawPath draws the links of ports in order, with arrows. */
  private drawPath(c: Pen, l: Layout, ports: readonly number[], colour: string, cam: Camera, dash: number[]): void {
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

  private ring(c: Pen, h: Half | undefined, cam: Camera, t: Palette): void {
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

  private node(c: Pen, s: Spot, f: Frames, cam: Camera, t: Palette, high: Highlight, bold: boolean): void {
    this.drawn++;
    const health = f.health.get(s.node.name)?.health ?? 'unknown';
    const host = s.node.tier === 0;
    const marked = high.nodes.has(s.node.name);
    const path = (grow: number) => {
      c.beginPath();
      if (host) c.arc(s.x, s.y, s.w / 2 + grow, 0, 7);
      else c.roundRect(s.x - s.w / 2 - grow, s.y - s.h / 2 - grow, s.w + 2 * grow, s.h + 2 * grow, 4 + grow);
    };
    if (marked) {
      c.globalAlpha = 0.35;
      c.fillStyle = t.warning;
      path(6);
      c.fill();
      c.globalAlpha = 1;
    }
    path(0);
    c.fillStyle = health === 'failed' ? t.critical : t.raised;
    c.fill();
    c.strokeStyle = health === 'failed' ? t.critical : health === 'degraded' ? t.warning : bold ? t.accent : t.dim;
    c.lineWidth = Math.max(bold ? 2.4 : health === 'degraded' ? 2 : 1, (bold ? 2 : 0.7) / cam.scale);
    if (health === 'unknown') c.setLineDash([3, 3]);
    c.stroke();
    c.setLineDash([]);
    // A name has the size of the node, but a readable minimum; it is omitted if it does not fit.
    const mark = host ? '' : health === 'failed' ? '▲ ' : health === 'degraded' ? '◆ ' : '';
    const px = Math.max(host ? 8 : 11, 7.5 / cam.scale);
    if (px * 0.58 * s.node.name.length > s.w + (host ? -2 : 4)) return;
    c.fillStyle = health === 'failed' ? t.panel : t.text;
    c.font = `${px}px system-ui, sans-serif`;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    const whole = px * 0.58 * (s.node.name.length + 2) < s.w ? mark : '';
    c.fillText(whole + s.node.name, s.x, s.y + 0.5, s.w - 2);
  }

  private pod(c: Pen, p: Pod, f: Frames, cam: Camera, t: Palette, high: Highlight, alarm: string | undefined, bold: boolean): void {
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
    if (p.folded) this.box(c, p, f, cam, t, high, p.h - (named ? px : 0) - 18);
  }

  /** box draws each switch of a box as a cell with the values of its busiest port. */
  private box(c: Pen, p: Pod, f: Frames, cam: Camera, t: Palette, mark: Highlight, room: number): void {
    const high = room / p.rows.length;
    p.rows.forEach((list, j) => {
      const w = (p.w - 16) / list.length;
      list.forEach((s, i) => {
        this.drawn++;
        const v = this.values;
        [v.load, v.queue, v.paused, v.lost] = [0, 0, 0, 0];
        for (let n = s.first; n < s.first + s.node.ports.length; n++) this.gather(v, n, f);
        const hot = queueHeat(v.queue);
        const x = p.x + 8 + i * w;
        const y = p.y + 10 + j * high;
        c.fillStyle = this.colours[Math.min(shades - 1, Math.floor(shades * v.load))]!;
        c.fillRect(x + 1, y + 1, w - 2, high - 4);
        if (hot > 0) {
          c.fillStyle = t.text;
          c.fillRect(x + 1, y + 1 + (high - 4) * (1 - hot), Math.min(3, w / 4), (high - 4) * hot);
        }
        const health = f.health.get(s.node.name)?.health;
        const sign = v.lost >= 0.5 ? '✕' : v.paused > 0.02 ? '‖' : health === 'failed' ? '▲' : health === 'degraded' ? '◆' : '';
        if (sign && high * cam.scale > 7) {
          c.fillStyle = t.text;
          c.font = `bold ${Math.min(high * 0.5, w * 0.8)}px system-ui, sans-serif`;
          c.textAlign = 'center';
          c.textBaseline = 'middle';
          c.fillText(sign, x + w / 2, y + high / 2 - 1);
        }
        if (mark.nodes.has(s.node.name)) {
          c.strokeStyle = t.warning;
          c.lineWidth = 2 / cam.scale;
          c.beginPath();
          c.roundRect(x, y, w, high - 2, 2);
          c.stroke();
        }
      });
    });
  }

  private tiers(c: Pen, l: Layout, cam: Camera, t: Palette, k: number): void {
    c.setTransform(k, 0, 0, k, 0, 0);
    c.font = '11px system-ui, sans-serif';
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    for (const tier of l.tiers) {
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
}

function unit(h: Half): [number, number] {
  const dx = h.x2 - h.x1;
  const dy = h.y2 - h.y1;
  const n = Math.hypot(dx, dy) || 1;
  return [dx / n, dy / n];
}
