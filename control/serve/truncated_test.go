package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/collect/region"
)

// TestTruncatedMemoryFileEndsServiceWithError: a memory file that another process
// truncates ends a running service with an error that names the file, also where only
// the controller reads it, because no report arrives.
func TestTruncatedMemoryFileEndsServiceWithError(t *testing.T) {
	for name, reports := range map[string]bool{"idle": false, "reports arrive": true} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			dir := filepath.Join(t.TempDir(), "memory")
			set(t, &cfg, "dta.memory", dir)
			b := start(t, cfg)
			r := b.reporter(b.Fabric().Switches()[0])
			r.deaf = true // the service ends
			r.append(b.fabric.lists.Mirrors.First, b.mirrorOf(0))
			b.stored(1)
			files, err := filepath.Glob(filepath.Join(dir, "*.weft"))
			if err != nil || len(files) == 0 {
				t.Fatalf("memory files %v, %v", files, err)
			}
			for _, path := range files {
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
			}
			ended := func() bool {
				select {
				case <-b.Served():
					return true
				default:
				}
				if reports {
					r.append(b.fabric.lists.Mirrors.First, b.mirrorOf(1))
				}
				return false
			}
			eventually(t, "the service has ended", ended)
			err = b.end()
			if !errors.Is(err, region.ErrTruncated) || !strings.Contains(err.Error(), files[0]) {
				t.Errorf("Run = %v; want ErrTruncated with the name of %s", err, files[0])
			}
			if err := b.store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
