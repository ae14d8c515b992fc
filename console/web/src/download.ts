/** download saves a file through the browser. */
export function download(name: string, data: Blob | string): void {
  const url = URL.createObjectURL(typeof data === 'string' ? new Blob([data]) : data);
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** svgText returns an SVG element as a file, with resolved style variables. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const s = getComputedStyle(document.documentElement);
  copy.setAttribute('style', `background:${s.getPropertyValue('--panel')};font:12px sans-serif`);
  return new XMLSerializer().serializeToString(copy).replace(/var\(--([\w-]+)\)/g, (_, name: string) => s.getPropertyValue('--' + name).trim());
}

export const json = (v: unknown) => JSON.stringify(v, null, 2);
