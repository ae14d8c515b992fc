// What fails because the network did is asked for again: when a laptop changes networks,
// or an interface comes and goes, the browser aborts its requests (ERR_NETWORK_CHANGED).

const waits = [100, 400, 1500]; // ms before each further attempt

/** again repeats what fails in a passing manner, until it succeeds or waits are used up. */
export async function again<T>(attempt: () => Promise<T>, passes: (e: unknown) => boolean = () => true): Promise<T> {
  for (const wait of waits) {
    try {
      return await attempt();
    } catch (e) {
      if (!passes(e)) throw e;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
  return attempt();
}
