package rdma

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/weft-telemetry/weft/wire/roce"
)

// FuzzResponder handles packets with a valid CRC and arbitrary other fields:
// memory panics on a write out of bounds (bytesMemory), and the bytes around the
// region are unchanged.
func FuzzResponder(f *testing.F) {
	good := roce.Packet{BTH: roce.BTH{Opcode: roce.WriteOnly, PKey: roce.DefaultPKey}, RETH: roce.RETH{Length: 8}, Payload: make([]byte, 8)}
	f.Add(good.AppendTo(nil), uint64(0), uint8(0))
	good.BTH.Opcode = roce.FetchAdd
	f.Add(good.AppendTo(nil), uint64(248), uint8(3))
	good.BTH.Opcode = roce.CmpSwap
	f.Add(good.AppendTo(nil), uint64(256), uint8(0))
	f.Fuzz(func(t *testing.T, body []byte, off uint64, fix uint8) {
		if len(body) > 2000 {
			return
		}
		all := make([]byte, 768)
		res := NewResponder(there, rand.New(rand.NewPCG(1, 2)), nil)
		reg := res.Register(bytesMemory(all[256:512:512]))
		qp, err := res.Connect(Connection{Path: Path{there, here}, Remote: 9})
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.Clone(body)
		if len(body) >= roce.BTHSize+roce.RETHSize {
			// Steer most inputs past the first checks.
			if fix&1 == 0 {
				copy(body[5:8], []byte{byte(qp >> 16), byte(qp >> 8), byte(qp)})
				body[9], body[10], body[11] = 0, 0, 0
			}
			if fix&2 == 0 {
				binary.BigEndian.PutUint64(body[12:], reg.Addr+off)
				binary.BigEndian.PutUint32(body[20:], reg.RKey)
			}
		}
		path := Path{here, there}
		pkt := path.appendHeaders(nil, len(body)+roce.ICRCSize)
		pkt = append(pkt, body...)
		if pkt, err = roce.AppendICRC(pkt, pkt); err != nil {
			return
		}
		res.Handle(here, pkt[path.headers():])
		if !bytes.Equal(all[:256], make([]byte, 256)) || !bytes.Equal(all[512:], make([]byte, 256)) {
			t.Fatalf("%x wrote outside of its region", body)
		}
	})
}

// FuzzRequester: only valid answers acknowledge packets.
func FuzzRequester(f *testing.F) {
	f.Add([]byte{0x11, 0, 0xff, 0xff, 0, 0, 0, 0x77, 0, 0, 0, 101, 0x1f, 0, 0, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 2000 {
			return
		}
		p := connect(t, 256, 64, 100)
		for range 5 {
			p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
			p.req.Next(0)
		}
		path := Path{there, here}
		pkt := path.appendHeaders(nil, len(body)+roce.ICRCSize)
		pkt = append(pkt, body...)
		var err error
		if pkt, err = roce.AppendICRC(pkt, pkt); err != nil {
			return
		}
		p.req.Handle(0, there, pkt[path.headers():])
		if st := p.req.Stats(); st.Acked+st.Lost+uint64(p.req.count) != 5 || p.req.sent > p.req.count {
			t.Fatalf("after %x: %+v, %d wait, %d sent", body, st, p.req.count, p.req.sent)
		}
	})
}
