package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// capture writes both directions of a link to a pcapng file. Each end is an
// interface with the packets that it sends, at the start of their transmission;
// the run starts in 1970.
type capture struct {
	name string
	w    *pcapgo.NgWriter
	file io.WriteCloser

	// The two ends run one after the other, so their frames are out of order.
	// flush sorts them when both have reached the same time.
	bytes  []byte
	frames []captured
}

type captured struct {
	at         engine.Time
	begin, end int // in bytes
	side       int // interface
}

// startCaptures opens the captures of the scenario.
func (x *session) startCaptures(o Options) error {
	if o.Capture == nil {
		return nil
	}
	for _, link := range x.s.Output.Capture {
		name := x.fabric.PortRef(link)
		if x.net.Port(link) == nil {
			return fmt.Errorf("capture: no port %v", link)
		}
		file, err := o.Capture(link, name)
		if err != nil {
			return fmt.Errorf("capture %s: %w", name, err)
		}
		c := &capture{name: name, file: file}
		x.captures = append(x.captures, c)
		if err := c.attach(x, link); err != nil {
			return fmt.Errorf("capture %s: %w", name, err)
		}
	}
	return nil
}

func (c *capture) attach(x *session, link model.Port) (err error) {
	a := x.net.Port(link)
	for side, p := range []*sim.Port{a, a.Peer()} {
		of := pcapgo.NgInterface{
			Name: x.fabric.PortRef(model.Port{
				Node: p.Node,
				Port: p.ID,
			}), LinkType: layers.LinkTypeEthernet, TimestampResolution: 9,
		}
		if c.w == nil {
			about := pcapgo.NgSectionInfo{Application: "weft", Comment: x.s.Name}
			c.w, err = pcapgo.NewNgWriterInterface(c.file, of, pcapgo.NgWriterOptions{SectionInfo: about})
		} else {
			_, err = c.w.AddInterface(of)
		}
		if err != nil {
			return err
		}
		before := p.Tap()
		p.SetTap(func(now engine.Time, pkt *sim.Packet) {
			if before != nil {
				before(now, pkt)
			}
			begin := len(c.bytes)
			c.bytes = x.net.AppendFrame(c.bytes, pkt, p)
			c.frames = append(c.frames, captured{now, begin, len(c.bytes), side})
		})
	}
	return nil
}

// flush writes the frames up to the current time.
func (c *capture) flush() error {
	slices.SortStableFunc(c.frames, func(a, b captured) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.side, b.side))
	})
	for _, f := range c.frames {
		frame := c.bytes[f.begin:f.end]
		info := gopacket.CaptureInfo{
			Timestamp: time.Unix(0, int64(f.at.Model())), CaptureLength: len(frame), Length: len(frame), InterfaceIndex: f.side,
		}
		if err := c.w.WritePacket(info, frame); err != nil {
			return err
		}
	}
	c.bytes, c.frames = c.bytes[:0], c.frames[:0]
	return nil
}

func (c *capture) close() error {
	if c.w == nil {
		return c.file.Close()
	}
	return errors.Join(c.w.Flush(), c.file.Close())
}
