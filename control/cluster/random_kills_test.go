package cluster

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
)

var killSeed = flag.Uint64("kill-seed", 25, "what TestKillsAtRandom kills, and when")

// randomPause is how long members work, at most, between two kills of TestKillsAtRandom: some
// are killed before they have begun, others have taken over meanwhile.
const randomPause = 2 * takeoverLease

// TestKillsAtRandom kills any of the processes that analyse or may lead, of three brokers, and
// ClickHouse, in one passage of a recording: what is stored is what one process finds.
func TestKillsAtRandom(t *testing.T) {
	race.LeaveToPlainRun(t) // the processes are what works
	want := shipped.alone(t)
	server := startServer(t)
	c := startCluster(t, server, "random", 3, takeoverLease)
	random := rand.New(rand.NewPCG(*killSeed, 6))
	killed := map[string]int{}
	c.replay(*kills, *killSeed, func() {
		time.Sleep(time.Duration(random.Int64N(int64(randomPause)))) // when it dies does not matter
		switch i := random.IntN(2); random.IntN(4) {
		case 0:
			killed["analyzer"]++
			c.analyzers[i].kill()
			c.analyzers[i] = c.start(FlowGroup)
		case 1:
			killed["leader or standby"]++
			c.leaders[i].kill()
			c.leaders[i] = c.start(LeadGroup)
		case 2:
			killed["broker"]++
			c.killBroker()
		default:
			killed["ClickHouse"]++
			server.Kill()
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
	})
	c.end()
	t.Logf("seed %d killed %v", *killSeed, killed)
	compare(t, want, c.contents())
}
