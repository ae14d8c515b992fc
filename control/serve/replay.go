package serve

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Replay is a service whose reports come from files and whose clock is theirs:
// the same decoders, memory, controller and analyses, without sockets, and
// without a queue in which something could be shed. One goroutine uses it.
type Replay struct {
	cfg       Config
	core      *core.Core
	fabric    *fabric
	collector *core.InProcessCollector
	decoders  *decoders
	totals    totals

	now        model.Time // of the recording
	lastReport model.Time // when the last report came
	polled     uint64     // reports in memory at the last poll
	err        error      // of the store, the first
	mirror     []byte
}

// NewReplay makes a replay of recordings of the configuration's fabric, in which
// there are reports of some kinds. A store may be nil. Close must follow.
func NewReplay(ctx context.Context, cfg Config, kinds [capture.NumKinds]uint64, store Store) (r *Replay, err error) {
	r = &Replay{cfg: cfg.clone(), totals: newTotals()}
	if r.fabric, err = readFabric(&cfg); err != nil {
		return nil, err
	}
	r.fabric.portless = r.fabric.portless || kinds[capture.ERSPAN]+kinds[capture.SPAN] > 0
	deps := core.Deps{
		Devices: noDevices{}, Records: func(b *record.Batch) { r.addRecords(ctx, b) }, Incident: r.totals.addIncident,
	}
	var last core.LastIDs
	if store != nil {
		deps.Store = store
		if last, err = core.ReadLastIDs(ctx, store); err != nil {
			return nil, err
		}
	}
	c := core.DefaultConfig(r.fabric.controllerConfig(&cfg, last))
	c.WriteQueue = math.MaxInt32
	if r.core, err = core.New(c, deps, nil); err != nil {
		return nil, err
	}
	ingest := func(at model.Time, list dta.ListID, data []byte) { r.core.Controller.IngestReport(at, list, data) }
	if r.decoders, err = r.fabric.decoders(&cfg, false, ingest); err != nil {
		return nil, err
	}
	r.collector, err = core.NewInProcessCollector(r.fabric.memory(), cfg.Controller.Step)
	return r, err
}

// Close frees memory.
func (r *Replay) Close() error { return r.collector.Close() }

// Ports are those of the configuration's sockets.
func (c *Config) Ports() capture.Ports {
	p := capture.Ports{DTA: []uint16{dta.Port, c.DTA.Listen.Port()}, INT: []uint16{INTPort}}
	if c.INT.Listen.IsValid() {
		p.INT = append(p.INT, c.INT.Listen.Port())
	}
	return p
}

// INTPort is the default port of INT reports.
const INTPort = 32766

// Run replays everything that a reader has and returns the findings. All of them
// are in the store then. Time ends with the last report, as that of a service does
// that is shut down: what would have come later is not known, so nothing is
// missing. On an error it returns the findings up to there.
func (r *Replay) Run(ctx context.Context, in *capture.Reader) (*Summary, error) {
	var d capture.Datagram
	for {
		err := in.Next(&d)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = r.ingest(&d)
		}
		if err != nil {
			return r.summary(in), err
		}
	}
	if err := r.collector.Drain(r.lastReport, r.ingestReport); err != nil {
		return r.summary(in), err
	}
	r.core.Controller.Flush()
	r.core.Controller.Tick(r.lastReport)
	r.flush(ctx)
	return r.summary(in), r.err
}

// ingest takes a report at its time.
func (r *Replay) ingest(d *capture.Datagram) error {
	if r.now == 0 {
		r.now, r.lastReport = d.Time, d.Time // time begins with the first report
		r.totals.from = d.Time
	}
	if err := r.advance(d.Time); err != nil {
		return err
	}
	r.lastReport = max(r.lastReport, d.Time) // a capture's times may go back a little
	at := r.lastReport
	emit := func(m *mirror.Mirror) {
		r.mirror = m.AppendTo(r.mirror[:0])
		r.core.Controller.IngestReport(at, r.fabric.lists.Mirrors.First, r.mirror)
	}
	switch d.Kind {
	case capture.DTA:
		r.collector.Receive(at, d.From, d.Payload)
		if r.collector.Stored()-r.polled >= pollAfter {
			return r.poll(at)
		}
	case capture.INT:
		r.decoders.ints.HandleDatagram(at, d.Payload)
	case capture.ERSPAN:
		r.decoders.erspan.DecodeGRE(at, model.AddrOf(d.From.Addr()), d.Payload, emit)
	case capture.SPAN:
		id, ok := r.fabric.doc.Fabric.ByName(d.Switch)
		if !ok || !r.fabric.doc.Fabric.Node(id).Role.IsSwitch() {
			return fmt.Errorf("mirrored packets of %q, which is not a switch of %s", d.Switch, r.cfg.Topology)
		}
		r.decoders.erspan.DecodeSPAN(at, id, d.Payload, d.Frame, emit)
	}
	return nil
}

// pollAfter is after how many reports memory is polled, even if no time has
// passed: the shortest of its rings hold four times as many.
const pollAfter = 256

// advance lets time pass up to an instant. While reports come, the controller is
// called as often as that of a service; in a long silence at growing intervals, so
// that a timeout is late by at most one part in a hundred.
func (r *Replay) advance(to model.Time) error {
	for {
		step := max(r.cfg.Controller.Step, r.now.Sub(r.lastReport)/100)
		next := r.now.Add(step)
		if next > to {
			return nil
		}
		r.now = next
		if err := r.poll(next); err != nil {
			return err
		}
		r.core.Controller.Tick(next)
		if r.err != nil {
			return r.err
		}
	}
}

// poll hands the controller what is in memory.
func (r *Replay) poll(now model.Time) error {
	r.polled = r.collector.Stored()
	return r.collector.Poll(now, r.ingestReport)
}

func (r *Replay) ingestReport(id dta.ListID, data []byte) {
	r.core.Controller.IngestReport(max(r.now, r.lastReport), id, data)
}

// maxBatch is how many records are written to the store at once.
const maxBatch = 50_000

// addRecords counts records, and writes those that wait when they are many.
func (r *Replay) addRecords(ctx context.Context, b *record.Batch) {
	r.totals.addRecords(b)
	if r.core.Writer != nil && r.core.Writer.Queued() >= maxBatch {
		r.flush(ctx)
	}
}

func (r *Replay) flush(ctx context.Context) {
	if r.core.Writer != nil && r.err == nil {
		r.err = r.core.Writer.Flush(context.WithoutCancel(ctx))
	}
}

// stages is the account of the pipeline, as a service's health has it.
func (r *Replay) stages() []api.Stage {
	list := core.PipelineStages(r.collector.Intake(), r.collector.Lost(), r.core.Controller.Stats())
	if st := r.decoders.ints.Stats(); st.Datagrams > 0 {
		list = append(list, intStage(intCounts{reader: st}))
	}
	if st := r.decoders.erspan.Stats(); st.Packets > 0 {
		list = append(list, erspanStage(st, 0))
	}
	return list
}
