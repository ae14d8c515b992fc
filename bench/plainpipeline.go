package bench

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// plainPipeline is how flow collectors are built: records of flows arrive in
// datagrams (here with NetFlow 5's fields), are decoded into structs, joined by key
// in a map, and inserted as rows of text and numbers, many with one statement.
const plainPipeline = "decode records, join in a map, INSERT"

// A plain record: addresses, in and out port, packets, bytes, ports, protocol.
const (
	plainRecord  = 4 + 4 + 2 + 2 + 4 + 4 + 2 + 2 + 1
	plainRecords = 1400 / plainRecord // of a datagram
	plainRows    = 500                // of a statement
)

// plainRun is what the pipeline did.
type plainRun struct {
	hopsPerSecond, bytesPerFlow float64
}

// plainDatagrams returns a switch's records of a slot.
func (s *slotFabric) plainDatagrams(sw model.NodeID, slot int64) (list [][]byte) {
	var b []byte
	for i, f := range s.seen[sw] {
		k := &s.flows[f.flow]
		n := s.packets(f.flow, slot)
		b = binary.BigEndian.AppendUint32(b, uint32(k.Src.Lo))
		b = binary.BigEndian.AppendUint32(b, uint32(k.Dst.Lo))
		b = binary.BigEndian.AppendUint16(b, uint16(f.in))
		b = binary.BigEndian.AppendUint16(b, uint16(f.out))
		b = binary.BigEndian.AppendUint32(b, uint32(n))
		b = binary.BigEndian.AppendUint32(b, uint32(n*packetSize))
		b = binary.BigEndian.AppendUint16(b, k.SrcPort)
		b = binary.BigEndian.AppendUint16(b, k.DstPort)
		b = append(b, byte(k.Proto))
		if len(b) == plainRecords*plainRecord || i == len(s.seen[sw])-1 {
			list = append(list, b)
			b = nil
		}
	}
	return list
}

// plainFlow is a flow of a slot as the pipeline joins it.
type plainFlow struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
	proto            uint8
	packets, bytes   uint64
	path             []string
}

type plainKey struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
	proto            uint8
}

// runPlainPipeline has the pipeline process slots.
func (s *slotFabric) runPlainPipeline(ctx context.Context, slots int) (r plainRun, err error) {
	dir, err := os.MkdirTemp("", "weft-bench-plain")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("duckdb", filepath.Join(dir, "plain.duckdb"))
	if err != nil {
		return r, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE flows (time TIMESTAMP_NS, src VARCHAR, dst VARCHAR, src_port USMALLINT, dst_port USMALLINT,
		proto UTINYINT, packets UBIGINT, bytes UBIGINT, path VARCHAR)`); err != nil {
		return r, err
	}
	rows := 0
	var took time.Duration
	for n := range int64(slots) {
		datagrams := map[string][][]byte{}
		for sw := range s.seen {
			datagrams[s.fabric.Node(sw).Name] = s.plainDatagrams(sw, n)
		}
		begin := processTime()
		flows := joinPlain(datagrams)
		if err := insertPlain(ctx, db, storeBegin.Add(time.Duration(n)*slotLength), flows); err != nil {
			return r, err
		}
		took += processTime() - begin
		rows += len(flows)
	}
	if _, err := db.ExecContext(ctx, "CHECKPOINT"); err != nil {
		return r, err
	}
	info, err := os.Stat(filepath.Join(dir, "plain.duckdb"))
	if err != nil {
		return r, err
	}
	return plainRun{float64(s.hops()*slots) / took.Seconds(), float64(info.Size()) / float64(max(rows, 1))}, ctx.Err()
}

// joinPlain decodes the datagrams of all switches and joins the records of each flow.
func joinPlain(datagrams map[string][][]byte) map[plainKey]*plainFlow {
	flows := map[plainKey]*plainFlow{}
	for name, list := range datagrams {
		for _, b := range list {
			for ; len(b) >= plainRecord; b = b[plainRecord:] {
				k := plainKey{
					src: netip.AddrFrom4([4]byte(b[0:4])), dst: netip.AddrFrom4([4]byte(b[4:8])),
					srcPort: binary.BigEndian.Uint16(b[20:]), dstPort: binary.BigEndian.Uint16(b[22:]), proto: b[24],
				}
				f := flows[k]
				if f == nil {
					f = &plainFlow{src: k.src, dst: k.dst, srcPort: k.srcPort, dstPort: k.dstPort, proto: k.proto}
					flows[k] = f
				}
				f.packets = max(f.packets, uint64(binary.BigEndian.Uint32(b[12:])))
				f.bytes = max(f.bytes, uint64(binary.BigEndian.Uint32(b[16:])))
				f.path = append(f.path, name)
			}
		}
	}
	return flows
}

// insertPlain inserts the flows of a slot in one transaction.
func insertPlain(ctx context.Context, db *sql.DB, at time.Time, flows map[plainKey]*plainFlow) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to roll back
	const columns = 9
	statement := func(rows int) string {
		return "INSERT INTO flows VALUES " + strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?), ", rows), ", ")
	}
	full, err := tx.PrepareContext(ctx, statement(plainRows))
	if err != nil {
		return err
	}
	defer full.Close()
	args := make([]any, 0, plainRows*columns)
	for _, f := range flows {
		args = append(args, at, f.src.String(), f.dst.String(), f.srcPort, f.dstPort, f.proto, f.packets, f.bytes, strings.Join(f.path, " "))
		if len(args) == cap(args) {
			if _, err := full.ExecContext(ctx, args...); err != nil {
				return fmt.Errorf("insert flows: %w", err)
			}
			args = args[:0]
		}
	}
	if len(args) > 0 {
		if _, err := tx.ExecContext(ctx, statement(len(args)/columns), args...); err != nil {
			return fmt.Errorf("insert flows: %w", err)
		}
	}
	return tx.Commit()
}
