// What cells of a delay matrix show, and how slow each is beside the others of its job.
// The drawing on the page and the saved one have the same colours.
import type { JobCell, JobDetail, JobFinding } from '../api/client';
import { format3, rate } from '../format';
import { duration } from '../time';

export const metrics = {
  took: { title: 'First byte to last', value: (c: JobCell) => c.took_ns, format: duration as (v: number) => string },
  wait: { title: 'Start of the step to the first byte', value: (c: JobCell) => c.wait_ns, format: duration as (v: number) => string },
  rate: { title: 'Rate while it sends', value: (c: JobCell) => c.rate_bps, format: rate },
} as const;
export type Metric = keyof typeof metrics;

/** MatrixCell is a cell with its place, and how many times as slow as the median cell it is. */
export interface MatrixCell extends JobCell {
  id: string; // "h0>h4", as in the URL
  row: number;
  column: number;
  times: number;
  text: string;
}

/** slow is from how many times the median on a cell is marked and listed. */
export const slow = 1.5;
const hottest = 3; // times the median: the end of the scale
export const scaleEnds = ['median', `${hottest}× as slow`] as const;

/** heat maps how slow a cell is to 0 to 1, so that a job without slow paths looks quiet. */
export const heat = (c: MatrixCell) => Math.min(1, Math.max(0, (c.times - 1) / (hottest - 1)));

export const timesText = (c: MatrixCell) => (c.times > 0.995 && c.times < 1.005 ? 'as the median' : `${format3(c.times)}× the median`);

/** matrixCells places the cells of a job. Times count in slots: one slot more of a short time is not twice as slow. */
export function matrixCells(j: JobDetail, metric: Metric): MatrixCell[] {
  const at = new Map(j.hosts.map((h, i) => [h, i]));
  const { value, format } = metrics[metric];
  const sorted = j.cells.map(value).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const times = (v: number) => (metric === 'rate' ? (v > 0 ? median / v : 1) : (v + j.resolution_ns) / (median + j.resolution_ns));
  return j.cells.map((c) => ({ ...c, id: `${c.src}>${c.dst}`, row: at.get(c.src)!, column: at.get(c.dst)!, times: times(value(c)), text: format(value(c)) }));
}

/** explains reports whether a finding is at an end of a cell's path or on it. */
export function explains(f: JobFinding, c: JobCell): boolean {
  if (f.cause === 'compute') return f.host === c.src;
  if (f.cause === 'host') return f.host === c.src || f.host === c.dst;
  const nodes = [c.src, ...c.path, c.dst];
  return f.cause === 'link' && nodes.some((n, i) => n === f.from && (!f.to || nodes[i + 1] === f.to));
}

/** matrixSvg returns the matrix as an SVG file. */
export function matrixSvg(j: JobDetail, metric: Metric, cells: MatrixCell[], colours: string[]): string {
  const [size, left, top] = [22, 96, 112];
  const plain = (s: string) => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const names = j.hosts.map((h, i) => `<text x="${left - 6}" y="${top + i * size + 15}" text-anchor="end">${plain(h)}</text><text transform="translate(${left + i * size + 14} ${top - 6}) rotate(-60)">${plain(h)}</text>`);
  const boxes = cells.map((c) => {
    const ring = c.times >= slow ? ' stroke="#000" stroke-width="2"' : '';
    return `<rect x="${left + c.column * size}" y="${top + c.row * size}" width="${size - 2}" height="${size - 2}" fill="${colours[Math.round(heat(c) * (colours.length - 1))]}"${ring}><title>${plain(`${c.src} > ${c.dst}: ${c.text}, ${timesText(c)}; ${c.path.join(' > ')}`)}</title></rect>`;
  });
  const [wide, deep] = [left + size * j.hosts.length + 60, top + size * j.hosts.length + 16];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${deep}" font-family="sans-serif" font-size="11" fill="#555"><text x="8" y="18">${plain(j.name)}: ${metrics[metric].title}, from row to column</text>${names.join('')}${boxes.join('')}</svg>`;
}
