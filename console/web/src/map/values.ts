// The values that are drawn of a port, or of several.
import type { Half } from './layout';
import type { Frames } from './port_states';

export interface Values {
  age: number;
  load: number;
  queue: number;
  paused: number;
  lost: number;
}

/** Reader reads values into one object, which it reuses. */
export class Reader {
  private readonly values: Values = { age: -1, load: 0, queue: 0, paused: 0, lost: 0 };

  /** half returns the values of a port, or of a bundle: of its busiest port, deepest queue and longest pause, and the sum of losses. */
  half(h: Half, f: Frames): Values {
    const v = this.clear();
    if (!h.ports) gather(v, h.port.index, f);
    else for (const i of h.ports) gather(v, i, f);
    return v;
  }

  /** node returns the values of the busiest of a node's ports, which begin at an index. */
  node(first: number, ports: number, f: Frames): Values {
    const v = this.clear();
    for (let i = first; i < first + ports; i++) gather(v, i, f);
    return v;
  }

  private clear(): Values {
    const v = this.values;
    [v.age, v.load, v.queue, v.paused, v.lost] = [-1, 0, 0, 0, 0];
    return v;
  }
}

function gather(v: Values, i: number, f: Frames): void {
  v.age = Math.max(v.age, f.age[i]!);
  v.load = Math.max(v.load, f.now.load[i]!);
  v.queue = Math.max(v.queue, f.now.queue[i]!);
  v.paused = Math.max(v.paused, f.now.paused[i]!);
  v.lost += f.now.lost[i]!;
}
