// The state that maps show: the live one, or that of the instant of a frozen range.
import { get, type Incident } from './api/client';
import { live } from './live.svelte';
import { Frames } from './map/port_states';
import { range } from './range.svelte';

export interface Shown {
  readonly frames: Frames;
  readonly incidents: Incident[]; // open at that time, without notices
  readonly error: unknown;
  readonly at: string; // of a past state that has been loaded; empty: live, or not yet
}

/** useShown follows the time range while a component exists. */
export function useShown(): Shown {
  const none = new Frames(live.frames!.ports);
  let past = $state.raw<{ at: string; frames: Frames; incidents: Incident[] }>({ at: '', frames: none, incidents: [] });
  let error = $state.raw<unknown>();
  $effect(() => {
    const at = range.at;
    error = undefined;
    if (!at) {
      past = { at: '', frames: none, incidents: [] };
      return;
    }
    const stop = new AbortController();
    get('/state', { query: { at }, signal: stop.signal }).then(
      (s) => {
        const frames = new Frames(none.ports);
        frames.apply(s);
        past = { at, frames, incidents: s.incidents ?? [] };
      },
      (e: unknown) => { if (!stop.signal.aborted) error = e; },
    );
    return () => stop.abort();
  });
  return {
    get frames() { return range.at ? past.frames : live.frames!; },
    get incidents() { return range.at ? past.incidents : live.incidents.filter((i) => i.state === 'open' && i.severity !== 'notice'); },
    get error() { return error; },
    get at() { return past.at; },
  };
}
