// Package label pushes INT-label blocks, the state of switch ports, into user
// packets between the IP header and its payload, and strips them so that the
// packet is restored byte for byte. It works on the raw bytes of IP packets;
// inswitch/label decides which packets a switch labels.
// Origin: docs/papers.md#int-label. Layout: docs/formats/label.md.
package label

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Proto is the IP protocol (IPv6: next header) of a labelled packet, one of
// the two numbers RFC 3692 leaves to experiments.
const Proto model.Proto = 253

// Version is the only layout defined. It also keeps other experiments on the
// same protocol number from being parsed as labels.
const Version = 1

// Sizes on the wire, in bytes.
const (
	OptionSize = 4
	ItemSize   = 32
	// FirstGrowth is what a packet grows by with its first label; each label
	// after that adds ItemSize.
	FirstGrowth = OptionSize + ItemSize
)

// How many labels a packet may carry. A fat-tree's longest path has 5 hops;
// 32 labels take 1 KiB, more than any common MTU can spare.
const (
	DefaultMaxHop = 5
	MaxMaxHop     = 32
)

// Errors of this package. A function that returns one has changed nothing.
var (
	ErrShort    = errors.New("label: short input")
	ErrBlock    = errors.New("label: invalid label block")
	ErrNotIP    = errors.New("label: not an IP packet")
	ErrLength   = errors.New("label: IP lengths disagree with the packet")
	ErrChecksum = errors.New("label: IPv4 header checksum is wrong or not restorable")
	ErrFull     = errors.New("label: packet has all the labels it may carry")
	ErrTooLong  = errors.New("label: labelled packet exceeds the MTU or what IP can state")
	ErrCapacity = errors.New("label: packet slice has no spare capacity")
)

// Option opens a label block. It holds the packet's original protocol and the
// number of labels that follow.
type Option struct {
	NextHeader model.Proto // protocol of the original packet, never Proto
	// Num is INT_num: the number of labels, plus MaxHop if the packet belongs
	// to a flow that every switch on its path must label.
	Num    uint8
	MaxHop uint8 // most labels this packet may carry, 1 to MaxMaxHop
}

// Specific reports whether every switch must label the packet.
func (o Option) Specific() bool { return o.Num > o.MaxHop }

// Count is the number of labels in the block.
func (o Option) Count() int {
	if o.Specific() {
		return int(o.Num - o.MaxHop)
	}
	return int(o.Num)
}

// BlockSize is the length of the whole block, this option included.
func (o Option) BlockSize() int { return OptionSize + ItemSize*o.Count() }

// Check returns ErrBlock if no switch of ours could have written o: no label
// at all, more than MaxHop of them, or a block inside a block.
func (o Option) Check() error {
	if o.MaxHop < 1 || o.MaxHop > MaxMaxHop || o.Num < 1 || o.Num > 2*o.MaxHop || o.NextHeader == Proto {
		return ErrBlock
	}
	return nil
}

// AppendTo appends the encoded option. It writes what o holds; Parse refuses
// what Check refuses.
func (o Option) AppendTo(b []byte) []byte {
	return append(b, byte(o.NextHeader), o.Num, o.MaxHop, Version)
}

// Parse decodes the option at the start of b.
func (o *Option) Parse(b []byte) (int, error) {
	*o = Option{}
	if len(b) < OptionSize {
		return 0, ErrShort
	}
	v := Option{NextHeader: model.Proto(b[0]), Num: b[1], MaxHop: b[2]}
	if b[3] != Version || v.Check() != nil {
		return 0, ErrBlock
	}
	*o = v
	return OptionSize, nil
}

// Item is one label: the state that one switch recorded when it forwarded the
// packet.
type Item struct {
	Switch  model.NodeID
	Ingress model.PortID
	Egress  model.PortID
	Time    model.Time // of the switch's clock, when the label was written
	// Latency is the time from the packet's arrival to Time. On the wire it
	// saturates at 4.29 s; below zero it becomes zero.
	Latency time.Duration
	// The egress queue's length when the packet was enqueued and dequeued. On
	// the wire they saturate at 4 GiB; below zero they become zero.
	EnqueueDepth model.Bytes
	DequeueDepth model.Bytes
	Queue        uint8  // egress queue, which is the priority where queues follow 802.1p
	Flags        uint8  // none defined; kept as they are
	Utilisation  uint16 // of the egress link's rate, in 1/65535
}

// AppendTo appends the encoded item.
func (it Item) AppendTo(b []byte) []byte {
	var w [ItemSize]byte
	it.put(&w)
	return append(b, w[:]...)
}

// put writes the item where it lies in a packet. It is in halves that are small
// enough to be inlined.
func (it *Item) put(w *[ItemSize]byte) {
	it.putIdentity((*[ItemSize / 2]byte)(w[:]))
	it.putState((*[ItemSize / 2]byte)(w[ItemSize/2:]))
}

func (it *Item) putIdentity(w *[ItemSize / 2]byte) {
	be := binary.BigEndian
	be.PutUint64(w[0:], uint64(it.Switch)<<32|uint64(it.Ingress)<<16|uint64(it.Egress))
	be.PutUint64(w[8:], uint64(it.Time))
}

func (it *Item) putState(w *[ItemSize / 2]byte) {
	be := binary.BigEndian
	be.PutUint64(w[0:], uint64(saturate(int64(it.Latency)))<<32|uint64(saturate(int64(it.EnqueueDepth))))
	be.PutUint64(w[8:], uint64(saturate(int64(it.DequeueDepth)))<<32|uint64(it.Queue)<<24|uint64(it.Flags)<<16|uint64(it.Utilisation))
}

// Parse decodes the item at the start of b.
func (it *Item) Parse(b []byte) (int, error) {
	if len(b) < ItemSize {
		*it = Item{}
		return 0, ErrShort
	}
	be := binary.BigEndian
	*it = Item{
		Switch:       model.NodeID(be.Uint32(b)),
		Ingress:      model.PortID(be.Uint16(b[4:])),
		Egress:       model.PortID(be.Uint16(b[6:])),
		Time:         model.Time(be.Uint64(b[8:])),
		Latency:      time.Duration(be.Uint32(b[16:])),
		EnqueueDepth: model.Bytes(be.Uint32(b[20:])),
		DequeueDepth: model.Bytes(be.Uint32(b[24:])),
		Queue:        b[28],
		Flags:        b[29],
		Utilisation:  be.Uint16(b[30:]),
	}
	return ItemSize, nil
}

// saturate clips v to 32 bits: a switch stuck for five seconds must not report
// a short wait.
func saturate(v int64) uint32 { return uint32(min(max(v, 0), math.MaxUint32)) }

// Block is a packet's labels, newest first. It aliases the bytes it was parsed
// from. The zero Block has no label.
type Block struct {
	Option
	items []byte // ItemSize × Count bytes
}

// Parse decodes the block at the start of b, which is what follows the IP
// header of a packet whose protocol is Proto.
func (k *Block) Parse(b []byte) (int, error) {
	*k = Block{}
	var o Option
	if _, err := o.Parse(b); err != nil {
		return 0, err
	}
	n := o.BlockSize()
	if len(b) < n {
		return 0, ErrShort
	}
	*k = Block{o, b[OptionSize:n:n]}
	return n, nil
}

// AppendTo appends the block as it was parsed.
func (k Block) AppendTo(b []byte) []byte {
	if len(k.items) == 0 {
		return b
	}
	return append(k.Option.AppendTo(b), k.items...)
}

// Len is the number of labels that Item can return.
func (k Block) Len() int { return len(k.items) / ItemSize }

// Item returns the label that i switches have pushed down: 0 is the newest. It
// panics unless 0 ≤ i < Len.
func (k Block) Item(i int) (it Item) {
	_, _ = it.Parse(k.items[i*ItemSize:]) // never short: items are whole
	return it
}
