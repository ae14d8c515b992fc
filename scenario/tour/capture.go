package tour

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
)

// capture writes frames to a pcapng file, each with a comment.
type capture struct {
	file *os.File
	w    *pcapgo.NgWriter
}

func newCapture(path string) (*capture, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("tour: capture: %w", err)
	}
	w, err := pcapgo.NewNgWriter(f, layers.LinkTypeEthernet)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &capture{f, w}, nil
}

func (c *capture) write(at model.Time, frame []byte, comment string) error {
	info := gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(at)), CaptureLength: len(frame), Length: len(frame)}
	return c.w.WritePacketWithOptions(info, frame, pcapgo.NgPacketOptions{Comments: []string{comment}})
}

func (c *capture) close() error { return errors.Join(c.w.Flush(), c.file.Close()) }
