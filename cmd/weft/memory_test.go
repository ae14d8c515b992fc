package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
)

// memory leaves the files of a collector that took a few reports, in the
// script's directory: "memory".
func memory(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: memory")
	}
	flow, err := model.ParseFlowKey("tcp 10.0.0.2:40000 > 10.0.1.2:80")
	ts.Check(err)
	key := flow.AppendTo(nil)

	kw, err := keywrite.Open(ts.MkAbs("kw.weft"), keywrite.DefaultConfig(1<<16))
	ts.Check(err)
	ts.Check(kw.Writer(0).Write(key, []byte{0, 0, 4, 210}, 2))
	ts.Check(kw.Region().Close())

	pc, err := postcard.Open(ts.MkAbs("postcard.weft"), postcard.DefaultConfig(1<<16))
	ts.Check(err)
	ts.Check(pc.Writer(0).Write(key, []uint32{16, 24, 32}, 2))
	ts.Check(pc.Writer(0).Write([]byte{10, 0, 0, 9}, []uint32{16, postcard.Blank, 32}, 2))
	ts.Check(pc.Region().Close())

	l, err := list.Open(ts.MkAbs("list.weft"), list.DefaultConfig(4, 24))
	ts.Check(err)
	for i := range byte(30) {
		ts.Check(l.Writer(0).Append(2, []byte{0, 0, 0, i}))
	}
	ts.Check(l.Region().Close())

	class := list.DefaultConfig(1, 24)
	class.Classes[0].Entry = translate.MatchSize(5)
	slow, err := list.Open(ts.MkAbs("slow.weft"), class)
	ts.Check(err)
	for _, m := range []translate.Match{{Key: key, Sum: 1200, Path: []uint32{16, 24, 32}}, {Key: []byte{10, 0, 0, 9}, Sum: 7, Path: []uint32{5}}} {
		entry := make([]byte, translate.MatchSize(5))
		copy(entry, m.AppendTo(nil))
		ts.Check(slow.Writer(0).Append(0, entry))
	}
	ts.Check(slow.Region().Close())

	ki, err := count.Open(ts.MkAbs("count.weft"), count.DefaultConfig(1<<16))
	ts.Check(err)
	for range 3 {
		ts.Check(ki.Writer(0).Add([]byte{10, 0, 0, 2}, 100, 2))
	}
	ts.Check(ki.Region().Close())
}
