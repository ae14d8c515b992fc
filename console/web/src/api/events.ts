// Server-sent events over fetch, because EventSource cannot send a token.
import { headers, Problem } from './client';

export interface Message {
  name: string;
  data: unknown;
}

/** listen reads events until the signal aborts it, and reconnects after errors. */
export async function listen(signal: AbortSignal, onEvent: (m: Message) => void, onState: (s: 'live' | 'lost', why: string) => void): Promise<void> {
  let last = '';
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 5000)) {
    try {
      const r = await fetch('/api/v1/events', { signal, headers: { ...headers(), ...(last ? { 'Last-Event-ID': last } : {}) } });
      if (!r.ok || !r.body) throw new Problem(r.status, r.status === 401 ? 'token required' : `events: ${r.status} ${r.statusText}`);
      onState('live', '');
      wait = 500;
      for await (const block of blocks(r.body)) {
        const m = parse(block);
        if (m.id) last = m.id;
        if (m.data) onEvent({ name: m.name, data: JSON.parse(m.data) });
      }
      onState('lost', 'the controller closed the connection');
    } catch (e) {
      if (signal.aborted) return;
      onState('lost', e instanceof Problem ? e.detail : 'the controller does not respond');
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

/** blocks splits a stream at empty lines. */
async function* blocks(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop()!;
    yield* parts;
  }
}

function parse(block: string): { id: string; name: string; data: string } {
  const m = { id: '', name: 'message', data: '' };
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) m.id = line.slice(4);
    else if (line.startsWith('event: ')) m.name = line.slice(7);
    else if (line.startsWith('data: ')) m.data += line.slice(6);
  }
  return m;
}
