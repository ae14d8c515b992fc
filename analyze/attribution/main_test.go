package attribution

import (
	"flag"
	"os"
	"testing"
)

// TestMain fixes the seed of the random worlds, so that a run fails or passes
// wherever it runs. Others: -rapid.seed.
func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed != nil && seed.Value.String() == "0" {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
