// The API client, typed by the OpenAPI document. Responses are JSON; errors are
// problem details, thrown as Problem.
import { again } from '../again';
import type { components, paths } from './schema';

type Schemas = components['schemas'];
export type Topology = Schemas['Topology'];
export type Node = Schemas['Node'];
export type State = Schemas['State'];
export type PortState = Schemas['PortState'];
export type NodeState = Schemas['NodeState'];
export type PortRef = Schemas['PortRef'];
export type Clock = Schemas['Clock'];
export type Incident = Schemas['Incident'];
export type IncidentDetail = Schemas['IncidentDetail'];
export type Participant = Schemas['Participant'];
export type DiagnosisDetail = Schemas['DiagnosisDetail'];
export type Graph = Schemas['Graph'];
export type Timeline = Schemas['Timeline'];
export type Flow = Schemas['Flow'];
export type FlowRef = Schemas['FlowRef'];
export type FlowDetail = Schemas['FlowDetail'];
export type TraceSummary = Schemas['TraceSummary'];
export type Trace = Schemas['Trace'];
export type TraceLayer = Schemas['TraceLayer'];
export type CounterSeries = Schemas['CounterSeries'];
export type SlowFlow = Schemas['SlowFlow'];
export type PortSeries = Schemas['PortSeries'];
export type Heatmap = Schemas['Heatmap'];
export type Fault = Schemas['Fault'];
export type FaultKind = Schemas['FaultKind'];
export type FaultRequest = Schemas['FaultRequest'];
export type Health = Schemas['Health'];
export type ReportAge = Schemas['ReportAge'];
export type WrongSource = Schemas['WrongSource'];
export type Stage = Schemas['Stage'];
export type Probe = Schemas['Probe'];
export type ProbeRequest = Schemas['ProbeRequest'];
export type Mark = Schemas['Mark'];
export type MarkRequest = Schemas['MarkRequest'];
export type FilterCheck = Schemas['FilterCheck'];
export type Job = Schemas['Job'];
export type JobDetail = Schemas['JobDetail'];
export type JobCell = Schemas['JobCell'];
export type JobFinding = Schemas['JobFinding'];

const prefix = '/api/v1';
type Short<P> = P extends `/api/v1${infer S}` ? S : never;
type Long<S extends string> = `/api/v1${S}`;
type Method = 'get' | 'post' | 'put' | 'delete';
type Operation<S extends string, M extends Method> = Long<S> extends keyof paths ? NonNullable<paths[Long<S>][M]> : never;
type Answer<O> = O extends { responses: infer R } ? Content<R[keyof R & (200 | 201)]> : never;
type Content<R> = R extends { content: { 'application/json': infer B } } ? B : never;
type Query<O> = O extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;
type PathOf<O> = O extends { parameters: { path: infer Q } } ? Q : never;
type Body<O> = O extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;

/** With has the parts of a request that the operation takes. */
type With<O> = { query?: Query<O>; path?: PathOf<O>; body?: Body<O>; signal?: AbortSignal };
type Route = Short<keyof paths>;

/** Problem is an error response. */
export class Problem extends Error {
  constructor(readonly status: number, readonly detail: string) {
    super(detail);
  }
}

const tokenKey = 'weft-token';
export const token = {
  get: () => sessionStorage.getItem(tokenKey) ?? '',
  set: (t: string) => sessionStorage.setItem(tokenKey, t),
};

export function headers(): Record<string, string> {
  const t = token.get();
  return t ? { Authorization: `Bearer ${t}` } : {};
}

export function url(route: Route, w: { query?: unknown; path?: unknown } = {}): string {
  const filled = route.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((w.path as Record<string, unknown>)[name])));
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries((w.query ?? {}) as Record<string, unknown>)) if (v !== undefined && v !== '') q.set(k, String(v));
  const text = q.toString();
  return prefix + filled + (text ? '?' + text : '');
}

async function request(method: string, at: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { method, headers: headers() };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...headers(), 'Content-Type': 'application/json' };
  }
  const aborted = (e: unknown) => e instanceof DOMException && e.name === 'AbortError';
  // A request that changes something may have arrived although its answer did not.
  const r = await again(() => fetch(at, init), (e) => method === 'GET' && !aborted(e)).catch((e: unknown) => {
    if (aborted(e)) throw e;
    throw new Problem(0, 'The controller does not respond. Is it running?');
  });
  if (!r.ok) {
    const p = (await r.json().catch(() => ({}))) as { detail?: string; errors?: { message?: string; location?: string }[] };
    const more = (p.errors ?? []).map((e) => `${e.location ?? ''} ${e.message ?? ''}`.trim()).join('; ');
    throw new Problem(r.status, [p.detail ?? r.statusText, more].filter(Boolean).join(': '));
  }
  return r;
}

export async function get<S extends Route>(route: S, w: With<Operation<S, 'get'>> = {}): Promise<Answer<Operation<S, 'get'>>> {
  return (await request('GET', url(route, w), undefined, w.signal)).json();
}
export async function post<S extends Route>(route: S, w: With<Operation<S, 'post'>>): Promise<Answer<Operation<S, 'post'>>> {
  return (await request('POST', url(route, w), w.body, w.signal)).json();
}
export async function put<S extends Route>(route: S, w: With<Operation<S, 'put'>>): Promise<Answer<Operation<S, 'put'>>> {
  return (await request('PUT', url(route, w), w.body, w.signal)).json();
}
export async function remove<S extends Route>(route: S, w: With<Operation<S, 'delete'>>): Promise<void> {
  await request('DELETE', url(route, w), undefined, w.signal);
}
/** blob reads a file: a capture or a drawing. */
export async function blob(at: string): Promise<Blob> {
  return (await request('GET', at)).blob();
}
