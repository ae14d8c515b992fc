package ns3

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed cpp/fattree.cc
var source []byte

// soname is the end of the libraries' names in ns-3 3.37, the release the
// program is written for: others declare Ipv4RoutingProtocol differently.
const soname = ".so.37"

// Debian's names. Its pkg-config files are of no use: they ask for include
// paths and libraries that libns3-dev does not bring.
var libraries = []string{"-lns3-internet", "-lns3-point-to-point", "-lns3-network", "-lns3-core"}

// ErrMissing is returned where ns-3 or the compiler is not installed.
var ErrMissing = errors.New("install it on Debian 12 with: apt-get install -y libns3-dev g++")

// Available reports what is missing to Run.
func Available() error {
	_, err := findLibrary(context.Background())
	return err
}

// findLibrary returns where the compiler finds ns-3.
func findLibrary(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("g++"); err != nil {
		return "", fmt.Errorf("ns3: g++ is not installed; %w", ErrMissing)
	}
	const name = "libns3-core.so"
	out, err := exec.CommandContext(ctx, "g++", "-print-file-name="+name).Output()
	if err != nil {
		return "", fmt.Errorf("ns3: find %s: %w", name, err)
	}
	found := strings.TrimSpace(string(out))
	if found == name { // g++ prints the name of a file that it cannot find
		return "", fmt.Errorf("ns3: libns3-dev is not installed; %w", ErrMissing)
	}
	library, err := filepath.EvalSymlinks(found)
	if err != nil {
		return "", fmt.Errorf("ns3: find %s: %w", name, err)
	}
	if !strings.HasSuffix(library, soname) {
		return "", fmt.Errorf("ns3: %s is not ns-3 3.37; %w", library, ErrMissing)
	}
	return library, nil
}

// build returns the program. It is cached in the user's cache under the hash of
// all its inputs. Concurrent builds make the same file, and each renames its
// own atomically.
func build(ctx context.Context) (string, error) {
	library, err := findLibrary(ctx)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("ns3: %w", err)
	}
	flags := append([]string{"-std=c++17", "-O2"}, libraries...)
	cache = filepath.Join(cache, "weft", "ns3")
	made := sha256.Sum256(fmt.Appendf(nil, "%s %q %s", library, flags, source))
	program := filepath.Join(cache, fmt.Sprintf("fattree-%x", made[:8]))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("ns3: %w", err)
	}
	dir, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", fmt.Errorf("ns3: %w", err)
	}
	defer os.RemoveAll(dir)
	src, bin := filepath.Join(dir, "fattree.cc"), filepath.Join(dir, "fattree")
	if err := os.WriteFile(src, source, 0o644); err != nil {
		return "", fmt.Errorf("ns3: %w", err)
	}
	// Libraries come after what needs them.
	args := append([]string{"-o", bin, src}, flags...)
	if out, err := exec.CommandContext(ctx, "g++", args...).CombinedOutput(); err != nil {
		return "", errors.Join(ctx.Err(), fmt.Errorf("ns3: compile: %w\n%s", err, out))
	}
	if err := os.Rename(bin, program); err != nil {
		return "", fmt.Errorf("ns3: %w", err)
	}
	return program, nil
}
