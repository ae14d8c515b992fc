// A Pen that writes SVG: the same Painter draws the map on screen and into files.
import type { Pen } from './pen';

const n = (v: number) => String(Math.round(v * 10) / 10);
const escape = (s: string) => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

export class SvgPen implements Pen {
  fillStyle: Pen['fillStyle'] = '#000';
  strokeStyle: Pen['strokeStyle'] = '#000';
  lineWidth = 1;
  lineCap: CanvasLineCap = 'butt';
  globalAlpha = 1;
  font = '10px sans-serif';
  textAlign: CanvasTextAlign = 'left';
  textBaseline: CanvasTextBaseline = 'alphabetic';
  private readonly out: string[] = [];
  private path = '';
  private dash: number[] = [];
  private k = 1; // the painter only scales and moves
  private dx = 0;
  private dy = 0;

  setTransform(k: number, _b: number, _c: number, _d: number, dx: number, dy: number): void {
    [this.k, this.dx, this.dy] = [k, dx, dy];
  }
  setLineDash(list: number[]): void {
    this.dash = list;
  }
  beginPath(): void {
    this.path = '';
  }
  moveTo(x: number, y: number): void {
    this.path += `M${this.at(x, y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `L${this.at(x, y)}`;
  }
  /** arc draws complete discs; the map has no other arcs. */
  arc(x: number, y: number, r: number): void {
    const R = n(r * this.k);
    this.path += `M${this.at(x - r, y)}a${R} ${R} 0 1 0 ${n(2 * r * this.k)} 0a${R} ${R} 0 1 0 ${n(-2 * r * this.k)} 0z`;
  }
  roundRect(x: number, y: number, w: number, h: number, radius: number): void {
    const r = Math.min(radius, w / 2, h / 2);
    const R = n(r * this.k);
    const turn = (tx: number, ty: number) => `A${R} ${R} 0 0 1 ${this.at(tx, ty)}`;
    this.path += `M${this.at(x + r, y)}L${this.at(x + w - r, y)}${turn(x + w, y + r)}L${this.at(x + w, y + h - r)}${turn(x + w - r, y + h)}L${this.at(x + r, y + h)}${turn(x, y + h - r)}L${this.at(x, y + r)}${turn(x + r, y)}z`;
  }
  stroke(): void {
    if (!this.path) return;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.map((d) => n(d * this.k)).join(' ')}"` : '';
    const cap = this.lineCap === 'butt' ? '' : ` stroke-linecap="${this.lineCap}"`;
    this.out.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${n(this.lineWidth * this.k)}"${dash}${cap}${this.alpha()}/>`);
  }
  fill(): void {
    this.out.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha()}/>`);
  }
  fillRect(x: number, y: number, w: number, h: number): void {
    this.out.push(`<rect x="${n(x * this.k + this.dx)}" y="${n(y * this.k + this.dy)}" width="${n(w * this.k)}" height="${n(h * this.k)}" fill="${this.fillStyle}"${this.alpha()}/>`);
  }
  fillText(text: string, x: number, y: number): void {
    const anchor = this.textAlign === 'center' ? ' text-anchor="middle"' : '';
    const base = this.textBaseline === 'middle' ? ' dominant-baseline="central"' : this.textBaseline === 'top' ? ' dominant-baseline="hanging"' : '';
    const weight = this.font.startsWith('bold') ? ' font-weight="bold"' : '';
    this.out.push(`<text x="${n(x * this.k + this.dx)}" y="${n(y * this.k + this.dy)}" font-size="${n(this.pixels() * this.k)}" fill="${this.fillStyle}"${anchor}${base}${weight}${this.alpha()}>${escape(text)}</text>`);
  }
  /** measureText estimates: sans-serif letters are about half as wide as high. */
  measureText(text: string): { width: number } {
    return { width: text.length * this.pixels() * 0.54 };
  }

  file(w: number, h: number): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="system-ui, sans-serif">\n${this.out.join('\n')}\n</svg>\n`;
  }

  private at(x: number, y: number): string {
    return `${n(x * this.k + this.dx)} ${n(y * this.k + this.dy)}`;
  }
  private pixels(): number {
    return Number(/([\d.]+)px/.exec(this.font)?.[1] ?? 10);
  }
  private alpha(): string {
    return this.globalAlpha === 1 ? '' : ` opacity="${n(this.globalAlpha)}"`;
  }
}
