//go:build vm

package erspan

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"os/exec"
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

// TestKernelDevices mirrors frames by the kernel's devices of every type, over both
// IP families, to one listener: all arrive, byte for byte.
func TestKernelDevices(t *testing.T) {
	for _, device := range []string{"erspan1", "erspan2", "erspan3", "ip6erspan2"} {
		t.Run(device, func(t *testing.T) {
			in := func(args ...string) {
				t.Helper()
				cmd := exec.Command("ip", append([]string{"netns", "exec", kernelSwitch}, args...)...)
				cmd.Env = append(os.Environ(), "ERSPAN_SEND=1")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			in("tc", "filter", "del", "dev", "port0", "egress")
			in("tc", "filter", "add", "dev", "port0", "egress", "matchall", "action", "mirred", "egress", "mirror", "dev", device)
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
				in(os.Args[0], "-test.run", "^TestSendFrames$")
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
