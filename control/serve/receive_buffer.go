package serve

import (
	"fmt"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
)

// Bounds of dta.receive_buffer where it is 0. The least is 10 ms at 25 Gb/s.
const (
	leastReceiveBuffer = 32 * model.MiB
	mostReceiveBuffer  = 256 * model.MiB
)

// datagramSize is the receive buffer that a datagram of one chunk is planned with. Linux
// counts 2,304 bytes for it on loopback, and up to 4,352 where a driver receives into
// pages; against that it grants twice the buffer that it is asked for.
const datagramSize = 2304

// receiveBuffer is that of each socket: the configured one, or what holds one slot of
// the planned flows at every switch. Switches whose clocks agree send it at once.
func (f *fabric) receiveBuffer(c *Config) model.Bytes {
	if b := c.DTA().ReceiveBuffer; b != 0 {
		return b
	}
	chunks, err := control.ChunksPerSlot(c.Controller.Flows)
	if err != nil {
		chunks = 0 // readFabric has returned the error
	}
	slot := model.Bytes(chunks) * model.Bytes(len(f.lists.Switches)) * datagramSize
	return min(max(slot/model.Bytes(max(c.DTA().Workers, 1)), leastReceiveBuffer), mostReceiveBuffer)
}

// SmallBuffer says that the kernel grants less than a receive buffer, and what to do.
func SmallBuffer(want, granted model.Bytes) string {
	return fmt.Sprintf("the kernel grants %s of a receive buffer of %s: set net.core.rmem_max to %d or more, or grant CAP_NET_ADMIN",
		model.FormatBytes(granted), model.FormatBytes(want), int64(want))
}

// grantedBuffer is how much of a receive buffer the kernel grants this process.
func grantedBuffer(size model.Bytes) (model.Bytes, error) {
	n, err := udp.GrantedBuffer(int(size))
	return model.Bytes(n), err
}
