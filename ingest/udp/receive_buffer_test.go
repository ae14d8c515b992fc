//go:build linux

package udp

import "testing"

// TestGrantedBufferHoldsDatagrams: what the kernel grants holds a datagram of 1,442 bytes
// for every 2,304, which no one reads meanwhile.
func TestGrantedBufferHoldsDatagrams(t *testing.T) {
	const want = 4 << 20
	granted, err := GrantedBuffer(want)
	if err != nil || granted < 1<<16 || granted > want {
		t.Fatalf("GrantedBuffer(%d) = %d, %v; want a part of it", want, granted, err)
	}
	in := listen(t, func(c *Config) { c.ReceiveBuffer = want })
	out := listen(t, nil)
	datagram := make([]byte, 1442)
	n := granted / 2304
	for range n {
		if _, err := out.Send(in.Local(), datagram); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := collect(t, in, n); len(got) != n || in.Stats().Dropped != 0 {
		t.Errorf("%d of %d datagrams, %d dropped; want all in a buffer of %d", len(got), n, in.Stats().Dropped, granted)
	}
}
