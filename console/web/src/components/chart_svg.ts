// A chart as an SVG file; the chart on screen is a canvas.
export interface Series {
  title: string;
  times: number[]; // seconds
  values: (number | null)[];
  format: (v: number) => string;
  max?: number | undefined;
  steps?: boolean;
}

const [wide, high, left, top, bottom] = [720, 220, 86, 30, 26];

export function chartSvg(s: Series, colours: { line: string; text: string; grid: string; panel: string }, axisTime: (s: number) => string): string {
  const [from, to] = [s.times[0] ?? 0, s.times.at(-1) ?? 1];
  const most = s.max ?? Math.max(1, ...s.values.map((v) => v ?? 0)) * 1.12;
  const x = (t: number) => (left + ((t - from) / (to - from || 1)) * (wide - left - 16)).toFixed(1);
  const y = (v: number) => (high - bottom - (Math.min(v, most) / most) * (high - top - bottom)).toFixed(1);
  let path = '';
  s.values.forEach((v, i) => {
    if (v === null) return;
    const first = i === 0 || s.values[i - 1] === null;
    path += first ? `M${x(s.times[i]!)} ${y(v)}` : s.steps ? `H${x(s.times[i]!)}V${y(v)}` : `L${x(s.times[i]!)} ${y(v)}`;
  });
  const rows = [0, 0.25, 0.5, 0.75, 1].map((f) => `<path d="M${left} ${y(f * most)}H${wide - 16}" stroke="${colours.grid}" stroke-width=".5"/><text x="${left - 8}" y="${Number(y(f * most)) + 4}" text-anchor="end">${s.format(f * most)}</text>`);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((f) => `<text x="${x(from + f * (to - from))}" y="${high - 8}" text-anchor="middle">${axisTime(from + f * (to - from))}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}" viewBox="0 0 ${wide} ${high}" font-family="system-ui, sans-serif" font-size="11" fill="${colours.text}">
<rect width="${wide}" height="${high}" fill="${colours.panel}"/><text x="12" y="18" font-size="13" font-weight="600">${s.title}</text>
${rows.join('')}${marks.join('')}<path d="${path}" fill="none" stroke="${colours.line}" stroke-width="1.5"/></svg>\n`;
}
