// The state of the console is in the URL fragment: #/flows/KEY?last=1s. Flow keys
// contain dots and slashes, which the server would take for a file path.

export interface Route {
  view: string;
  id: string;
  params: Record<string, string>;
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view, ...rest] = path.split('/');
  return { view: view || 'map', id: rest.map(decodeURIComponent).join('/'), params: Object.fromEntries(new URLSearchParams(query)) };
}

export const route: Route = $state(read());

addEventListener('hashchange', () => Object.assign(route, read()));

function address(view: string, id: string, params: Record<string, string | undefined>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v) q.set(k, v);
  const text = q.toString();
  return '#/' + view + (id ? '/' + encodeURIComponent(id) : '') + (text ? '?' + text : '');
}

/** times are the parameters of the time range, which links carry from view to view. */
const times = ['last', 'from', 'to', 'at'] as const;

/** hasOwnTime reports whether a view is about a time of its own, as an incident and a trace are. */
export const hasOwnTime = (view: string, id: string) => id !== '' && (view === 'incidents' || view === 'traces');

export function href(view: string, id = '', params: Record<string, string | undefined> = {}): string {
  const carried = hasOwnTime(view, id) || times.some((k) => params[k]) ? {} : Object.fromEntries(times.map((k) => [k, route.params[k]]));
  return address(view, id, { ...params, ...carried });
}

export function go(view: string, id = '', params: Record<string, string | undefined> = {}): void {
  location.hash = href(view, id, params);
}

/** setParams changes parameters of the route without a new history entry. */
export function setParams(params: Record<string, string | undefined>): void {
  const next = address(route.view, route.id, { ...route.params, ...params });
  if (next === location.hash) return;
  history.replaceState(null, '', next);
  Object.assign(route, read());
}
