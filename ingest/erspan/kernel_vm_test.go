//go:build vm

package erspan

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// These tests run in scripts/vm/jobs/erspan, which makes a switch of the kernel's
// ERSPAN devices in a network namespace of its own.

const (
	kernelSwitch = "weft-erspan"
	frames       = 100
)

// sentFrame is the i-th frame that the switch's port sends: IPv4 and UDP, of
// various lengths.
func sentFrame(i int) []byte {
	f := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}, make([]byte, 46+i*13)...)
	ip := f[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, byte(model.UDP)
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	binary.BigEndian.PutUint16(ip[24:], uint16(len(ip)-20))
	for k := range ip[28:] {
		ip[28+k] = byte(i + k)
	}
	return f
}

// TestSendFrames is the switch's side, in its namespace.
func TestSendFrames(t *testing.T) {
	if os.Getenv("ERSPAN_SEND") == "" {
		t.Skip("a helper of TestKernelDevices")
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	port, err := net.InterfaceByName("port0")
	if err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		if err := unix.Sendto(fd, sentFrame(i), 0, &unix.SockaddrLinklayer{Ifindex: port.Index}); err != nil {
			t.Fatal(err)
		}
	}
}

// inSwitch runs a command in the switch's namespace.
func inSwitch(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("ip", append([]string{"netns", "exec", kernelSwitch}, args...)...)
	cmd.Env = append(os.Environ(), "ERSPAN_SEND=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
}

// mirrorTo has the kernel mirror what port0 sends to a device.
func mirrorTo(t *testing.T, device string) {
	t.Helper()
	inSwitch(t, "tc", "filter", "del", "dev", "port0", "egress")
	inSwitch(t, "tc", "filter", "add", "dev", "port0", "egress", "matchall", "action", "mirred", "egress", "mirror", "dev", device)
}

func sendFrames(t *testing.T) {
	t.Helper()
	inSwitch(t, os.Args[0], "-test.run", "^TestSendFrames$")
}

var devices = []string{"erspan1", "erspan2", "erspan3", "ip6erspan2"}

// TestKernelDevices mirrors frames by the kernel's devices of every type, over both
// IP families, to one listener: all arrive, byte for byte.
func TestKernelDevices(t *testing.T) {
	for _, device := range devices {
		t.Run(device, func(t *testing.T) {
			mirrorTo(t, device)
			d, err := NewDecoder(Config{Switch: func(model.Addr) (model.NodeID, bool) { return 7, true }})
			if err != nil {
				t.Fatal(err)
			}
			l, err := Listen(netip.IPv6Unspecified(), d)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				sendFrames(t)
			}()
			n := 0
			err = l.Run(ctx, func(_ model.Time, m *mirror.Mirror) {
				if len(m.Frame) < 12 || !bytes.Equal(m.Frame[6:12], []byte{2, 0, 0, 0, 0, 1}) {
					return // the kernel's own, such as neighbour discovery
				}
				if want := sentFrame(n); !bytes.Equal(m.Frame, want) {
					t.Errorf("frame %d is %x; want %x", n, m.Frame, want)
				}
				if n++; n == frames {
					cancel()
				}
			})
			<-sent
			if err != nil || n != frames {
				t.Errorf("%d frames, %v, %+v; want %d", n, err, d.Stats(), frames)
			}
		})
	}
}

// servedFabric has the kernel's switch as tor0, by the addresses of its uplink.
const servedFabric = `
nodes:
  - {name: h1, role: host, ipv4: 192.0.2.1}
  - {name: h2, role: host, ipv4: 192.0.2.2}
  - {name: tor0, role: tor, ipv4: 10.9.0.2, ipv6: "fd09::2"}
links:
  - ends: [h1, tor0]
  - ends: [h2, tor0]
`

// TestServeTakesKernelMirrors mirrors frames by the kernel's devices of every type to
// weft serve, which takes all of them for mirrors of one switch.
func TestServeTakesKernelMirrors(t *testing.T) {
	dir := t.TempDir()
	topology := filepath.Join(dir, "fabric.yaml")
	if err := os.WriteFile(topology, []byte(servedFabric), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := exec.Command("weft", "serve", "--topology", topology, "--erspan-listen", "::", "--store-path", filepath.Join(dir, "weft.duckdb"))
	var log bytes.Buffer
	serve.Stdout, serve.Stderr = &log, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Signal(os.Interrupt)
		if err := serve.Wait(); err != nil || t.Failed() {
			t.Errorf("weft serve: %v\n%s", err, &log)
		}
	}()
	mirrors := func() (n uint64, answered bool) {
		r, err := http.Get("http://127.0.0.1:8080/api/v1/sources")
		if err != nil {
			return 0, false
		}
		defer r.Body.Close()
		var sources struct {
			Items []struct {
				Switch, Source string
				Total          uint64 `json:"reports_total"`
			}
		}
		if json.NewDecoder(r.Body).Decode(&sources) != nil {
			return 0, false
		}
		for _, s := range sources.Items {
			if s.Switch == "tor0" && s.Source == "mirror" {
				n = s.Total
			}
		}
		return n, true
	}
	await(t, "weft serve to answer", func() bool { _, answered := mirrors(); return answered })
	for i, device := range devices {
		mirrorTo(t, device)
		sendFrames(t)
		want := uint64((i + 1) * frames)
		await(t, device+"'s mirrors", func() bool { n, _ := mirrors(); return n >= want })
	}
}

// await waits for as long as an emulated machine may take.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited five minutes in vain for %s", what)
		}
	}
}
