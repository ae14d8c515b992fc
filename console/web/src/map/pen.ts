// What drawings of the fabric are made with: a pen, a camera, colours.

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

/** shades is the number of colours from idle to full load. */
export const shades = 24;
const stops: Record<'light' | 'dark', [number, number[]][]> = {
  light: [[0, [186, 196, 206]], [0.2, [92, 160, 196]], [0.5, [45, 110, 160]], [0.75, [206, 132, 20]], [1, [128, 62, 0]]],
  dark: [[0, [58, 72, 86]], [0.2, [62, 128, 164]], [0.5, [98, 178, 220]], [0.75, [224, 152, 40]], [1, [255, 214, 150]]],
};

/** ramp returns the colours from idle to full load. Red is left to root causes. */
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

export function unit(h: { x1: number; y1: number; x2: number; y2: number }): [number, number] {
  const dx = h.x2 - h.x1;
  const dy = h.y2 - h.y1;
  const n = Math.hypot(dx, dy) || 1;
  return [dx / n, dy / n];
}
