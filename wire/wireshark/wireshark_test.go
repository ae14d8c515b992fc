package wireshark

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// TestTsharkReadsEveryFormat writes one frame per format and lets tshark
// dissect them: nothing malformed, no error, every field as it was encoded.
func TestTsharkReadsEveryFormat(t *testing.T) {
	all := samples()
	file := filepath.Join(t.TempDir(), "weft.pcapng")
	writePcapng(t, file, all)

	names := map[string]bool{}
	for _, s := range all {
		for name := range s.want {
			names[name] = true
		}
	}
	columns := append([]string{"_ws.malformed", "_ws.expert.severity", "_ws.expert.message"}, slices.Sorted(maps.Keys(names))...)
	rows := tshark(t, file, columns)
	if len(rows) != len(all) {
		t.Fatalf("tshark printed %d rows; want one for each of %d frames", len(rows), len(all))
	}
	for i, s := range all {
		t.Run(s.name, func(t *testing.T) {
			got := map[string]string{}
			for j, cell := range strings.Split(rows[i], "\t") {
				got[columns[j]] = cell
			}
			if got["_ws.malformed"] != "" || strings.Contains(got["_ws.expert.severity"], expertError) {
				t.Errorf("tshark reports an error in %x: malformed %q, expert %q", s.frame, got["_ws.malformed"], got["_ws.expert.message"])
			}
			for name, want := range s.want {
				if got[name] != want {
					t.Errorf("%s = %q; want %q in %x", name, got[name], want, s.frame)
				}
			}
		})
	}
}

// expertError is Wireshark's number for findings of severity "error".
const expertError = "8388608"

// TestTsharkFindsErrors proves that the test above can fail: truncated packets
// and trailing bytes are reported.
func TestTsharkFindsErrors(t *testing.T) {
	var broken []sample
	for _, s := range samples() {
		switch s.name {
		case "DTA v1", "DTA v2", "flowset cells", "epoch telemetry", "INT report":
			// The transport header and the report's length remain; its last bytes
			// are missing, as in a capture with a wrong length.
			n := len(s.frame) - 3
			broken = append(broken, sample{name: s.name + ", cut", frame: resized(s.frame, n)})
		}
	}
	file := filepath.Join(t.TempDir(), "broken.pcapng")
	writePcapng(t, file, broken)
	rows := tshark(t, file, []string{"_ws.malformed", "_ws.expert.severity", "_ws.lua.error"})
	for i, s := range broken {
		if strings.Trim(rows[i], "\t") == "" {
			t.Errorf("tshark reports no error in %s: %x", s.name, s.frame)
		}
	}
	if len(broken) == 0 {
		t.Error("no sample was broken; its name has changed")
	}
}

// resized cuts an Ethernet/IPv4/UDP frame and corrects the lengths, so that
// only the payload is wrong.
func resized(frame []byte, n int) []byte {
	out := bytes.Clone(frame[:n])
	total := n - 14
	out[16], out[17] = byte(total>>8), byte(total)
	out[38], out[39] = byte((total-20)>>8), byte(total-20)
	out[40], out[41] = 0, 0
	return out
}

func writePcapng(t *testing.T, file string, all []sample) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := pcapgo.NewNgWriter(f, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(i)), CaptureLength: len(s.frame), Length: len(s.frame)}
		if err := w.WritePacket(info, s.frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// tshark dissects a file and returns a line of tab-separated columns per
// frame. It is a build dependency of the tests: make test installs it.
func tshark(t *testing.T, file string, columns []string) []string {
	t.Helper()
	args := []string{
		"-r", file, "-X", "lua_script:weft.lua",
		"-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-E", "separator=/t",
	}
	for _, c := range columns {
		args = append(args, "-e", c)
	}
	cmd := exec.Command("tshark", args...)
	// A fresh home, without the user's preferences and plugins.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s(install it: scripts/need tshark:tshark)", err, &stderr)
	}
	if strings.Contains(strings.ToLower(stderr.String()), "lua") {
		t.Fatalf("tshark reports errors in weft.lua:\n%s", &stderr)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
