package ns3

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withCompiler puts a g++ made of shell first on the path and gives the test a
// separate cache.
func withCompiler(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "g++"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// library makes a file as libns3-dev installs it, a link to the real name.
func library(t *testing.T, soname string) string {
	t.Helper()
	dir := t.TempDir()
	link := filepath.Join(dir, "libns3-core.so")
	if err := os.WriteFile(filepath.Join(dir, soname), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(soname, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestAvailableSaysWhatToInstall(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   string
	}{
		"no library":      {`echo libns3-core.so`, "libns3-dev is not installed"},
		"another release": {`echo ` + library(t, "libns3-core.so.43"), "libns3-core.so.43 is not ns-3 3.37"},
	} {
		t.Run(name, func(t *testing.T) {
			withCompiler(t, tc.script)
			checkMissing(t, tc.want)
		})
	}
	t.Run("no compiler", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		checkMissing(t, "g++ is not installed")
	})
}

func checkMissing(t *testing.T, want string) {
	t.Helper()
	const advice = "apt-get install -y libns3-dev g++"
	err := Available()
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), advice) {
		t.Errorf("Available() = %v; want %q and %q", err, want, advice)
	}
	if _, runErr := Run(t.Context(), small()); !errors.Is(runErr, ErrMissing) {
		t.Errorf("Run = %v; want %v", runErr, err)
	}
}

// compiler answers as g++ does. It leaves a line in the file builds each time
// it compiles, and what it makes prints a result.
func compiler(t *testing.T, program string) (script, builds string) {
	builds = filepath.Join(t.TempDir(), "builds")
	return `case $1 in -print-file-name*) echo ` + library(t, "libns3-core.so.37") + `; exit;; esac
grep -q FlowHash "$3" || exit 1
echo built >> ` + builds + `
printf '#!/bin/sh\n%s\n' '` + program + `' > "$2"
chmod +x "$2"
`, builds
}

func TestRunBuildsOnce(t *testing.T) {
	// The program counts the flows it is given and says so as packets sent.
	script, builds := compiler(t, `printf "{\"sent\":%d}" "$(wc -l)"`)
	withCompiler(t, script)
	for range 3 {
		if got, err := Run(t.Context(), small()); err != nil || !cmp.Equal(got, Result{Sent: 3}) {
			t.Fatalf("Run = %+v, %v; want 3 flows counted", got, err)
		}
	}
	if got, err := os.ReadFile(builds); string(got) != "built\n" {
		t.Errorf("three runs: %q, %v; want one build", got, err)
	}
}

func TestRunsAtTheSameTime(t *testing.T) {
	script, _ := compiler(t, `printf "{\"sent\":%d}" "$(wc -l)"`)
	withCompiler(t, script)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := Run(t.Context(), small()); err != nil || got.Sent != 3 {
				t.Errorf("Run = %+v, %v; want 3 flows counted", got, err)
			}
		})
	}
	wg.Wait()
	cache, _ := os.UserCacheDir()
	left, err := os.ReadDir(filepath.Join(cache, "weft", "ns3"))
	if err != nil || len(left) != 1 {
		t.Errorf("the cache holds %v, %v; want the program alone", left, err)
	}
}

func TestRunErrorsNameTheCause(t *testing.T) {
	t.Run("compile", func(t *testing.T) {
		withCompiler(t, `case $1 in -print-file-name*) echo `+library(t, "libns3-core.so.37")+`; exit;; esac
echo "fattree.cc:1: no such thing" >&2
exit 1`)
		if _, err := Run(t.Context(), small()); err == nil || !strings.Contains(err.Error(), "no such thing") {
			t.Errorf("Run = %v; want the compiler's words", err)
		}
	})
	t.Run("run", func(t *testing.T) {
		script, _ := compiler(t, `echo "host 3 cannot send" >&2; exit 1`)
		withCompiler(t, script)
		if _, err := Run(t.Context(), small()); err == nil || !strings.Contains(err.Error(), "host 3 cannot send") {
			t.Errorf("Run = %v; want the program's words", err)
		}
	})
}
