package sim

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
)

// labeller pushes a label at every switch. It is what dataplane/simhost does of
// inswitch's programs, written out.
type labeller struct{}

func (l labeller) At(s Stage) Runner {
	if s == StageDequeue {
		return l
	}
	return nil
}

func (labeller) Run(c *Context) {
	e := c.Extra(c.Packet)
	item := label.Item{Switch: c.Switch.ID, Egress: c.Out.ID, Time: c.Now}
	opt := label.Option{NextHeader: c.Packet.outermost().Proto, Num: 1, MaxHop: label.MaxMaxHop}
	if len(e.Labels) > 0 {
		_, _ = opt.Parse(e.Labels)
		opt.Num++
	}
	before := len(e.Labels)
	rest := append([]byte{}, e.Labels[min(before, label.OptionSize):]...)
	e.Labels = append(item.AppendTo(opt.AppendTo(e.Labels[:0])), rest...)
	c.Resize(int32(len(e.Labels) - before))
}

// everything is the yard with flows of all transports and families to hosts,
// services and the outside, BGP, and labels in every packet.
func everything(t testing.TB) *Network {
	n := yard(t, func(c *Config) { c.TTL = 60 })
	n.speak(t, 100*time.Microsecond)
	for _, sw := range n.switches {
		sw.Attach(labeller{})
	}
	for i, f := range []traffic.Flow{
		{Src: 1, Dst: 4, Priority: 3},
		{Src: 1, Dst: 4, V6: true, Priority: 3},
		{Src: 2, To: vip4, Transport: traffic.TCP},
		{Src: 2, To: vip6, Transport: traffic.UDP},
		{Src: 3, To: outside4, Transport: traffic.UDP},
		{Src: 5, To: vip6, Priority: 3},
		{Src: 5, To: vip4, Priority: 3},
		{Src: 0, From: vm4, To: outside4, Transport: traffic.TCP},
	} {
		f.Bytes, f.Start = 3000, model.Time(1000*i)
		n.add(t, f)
	}
	return n
}

// TestLabelledFrames holds that the frame of a labelled packet is what
// wire/label makes of the frame without: strip one and the other is there.
func TestLabelledFrames(t *testing.T) {
	n := everything(t)
	seen := map[Kind]int{}
	for _, p := range n.ports {
		p.SetTap(func(_ engine.Time, pkt *Packet) {
			if p.sw == nil {
				return
			}
			frame := n.AppendFrame([]byte("before"), pkt, p)[6:]
			if pkt.Kind == KindPFC {
				return
			}
			if len(frame) != int(pkt.Size) {
				t.Fatalf("frame of %d bytes for a packet of %d: %x", len(frame), pkt.Size, frame)
			}
			var want label.Block
			if _, err := want.Parse(pkt.Extra.Labels); err != nil || want.Len() == 0 {
				t.Fatalf("labels %x: %v; want some", pkt.Extra.Labels, err)
			}
			got, err := label.Inspect(frame[ethernetSize:])
			if err != nil || !bytes.Equal(got.AppendTo(nil), want.AppendTo(nil)) {
				t.Fatalf("Inspect(%x) = %x, %v; want %x", frame, got.AppendTo(nil), err, want.AppendTo(nil))
			}
			bare, err := label.Strip(append([]byte{}, frame[ethernetSize:]...))
			if err != nil {
				t.Fatalf("Strip(%x) = %v", frame, err)
			}
			labels := pkt.Extra.Labels
			pkt.Extra.Labels = nil
			plain := n.AppendFrame(nil, pkt, p)[ethernetSize:]
			pkt.Extra.Labels = labels
			if !bytes.Equal(bare, plain) {
				t.Fatalf("without labels %x; want %x", bare, plain)
			}
			var read packet.Packet
			if err := read.Parse(frame); err != nil || read.Innermost().Key != pkt.Key || read.Outer.Key != *pkt.outermost() || read.Innermost().TTL != pkt.InnerTTL() {
				t.Fatalf("Parse(%x) = %v in %v, TTL %d, %v; want %v in %v, TTL %d", frame, read.Innermost().Key, read.Outer.Key, read.Innermost().TTL, err, pkt.Key, *pkt.outermost(), pkt.InnerTTL())
			}
			seen[pkt.Kind]++
		})
	}
	n.run(time.Millisecond)
	for _, k := range []Kind{KindData, KindAck, KindTCP, KindUDP} {
		if seen[k] < 10 {
			t.Errorf("%d packets of kind %d seen; want many", seen[k], k)
		}
	}
	if n.Counts.LabelsLost == 0 {
		t.Error("no label is counted as lost at the muxes")
	}
	if n.Finished != 8 || n.Counts.Drops != [numReasons]int64{} {
		t.Errorf("%d flows finished, drops %v; want 8, none", n.Finished, n.Counts.Drops)
	}
}

// TestTsharkReadsFrames lets tshark judge what AppendFrame writes.
func TestTsharkReadsFrames(t *testing.T) {
	n := everything(t)
	file := filepath.Join(t.TempDir(), "sim.pcapng")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := pcapgo.NewNgWriter(out, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	frames, labelled := 0, 0
	for _, p := range n.ports {
		p.SetTap(func(now engine.Time, pkt *Packet) {
			b := n.AppendFrame(nil, pkt, p)
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(now.Model())), CaptureLength: len(b), Length: len(b)}, b); err != nil {
				t.Fatal(err)
			}
			frames++
			if pkt.Extra != nil && len(pkt.Extra.Labels) > 0 {
				labelled++
			}
		})
	}
	n.run(200 * time.Microsecond)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tshark", "-r", file, "-X", "lua_script:../wire/wireshark/weft.lua",
		"-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-T", "fields", "-E", "separator=/t", "-e", "_ws.malformed", "-e", "weft.label.int_num",
		"-e", "ip.checksum.status", "-e", "tcp.checksum.status", "-e", "udp.checksum.status", "-e", "frame.protocols")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v (install it: scripts/need tshark:tshark)", err)
	}
	rows := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	got := 0
	for i, row := range rows {
		cells := strings.Split(row, "\t")
		if cells[0] != "" || strings.Contains(cells[2]+cells[3]+cells[4], "0") { // 0 is a checksum that is wrong
			t.Errorf("frame %d: %q; want nothing malformed and no wrong checksum", i+1, row)
		}
		if cells[1] != "" {
			got++
		}
	}
	if len(rows) != frames || got != labelled || labelled < 100 {
		t.Errorf("tshark reads %d frames, %d with labels; want %d, %d", len(rows), got, frames, labelled)
	}
}

// TestFramesAllocateNothing, whatever their payload.
func TestFramesAllocateNothing(t *testing.T) {
	n := yard(t, nil)
	n.add(t, traffic.Flow{Src: 1, To: vip4, Bytes: 5000, Priority: 3})
	b := make([]byte, 0, 4096)
	sizes := map[int]int{}
	for _, p := range n.ports {
		p.SetTap(func(_ engine.Time, pkt *Packet) {
			if got := testing.AllocsPerRun(1, func() { b = n.AppendFrame(b[:0], pkt, p) }); got != 0 {
				t.Fatalf("AppendFrame allocates %v times; want 0", got)
			}
			sizes[len(b)]++
		})
	}
	n.run(time.Millisecond)
	if want := map[int]int{}; cmp.Equal(sizes, want) || n.Finished != 1 {
		t.Errorf("frames %v, %d flows finished; want some, 1", sizes, n.Finished)
	}
}
