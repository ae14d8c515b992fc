package serve

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Replay is a service whose reports come from files and whose clock is theirs:
// the same decoders, memory, controller and analyses, without sockets, and
// without a queue in which something could be shed. One goroutine uses it.
type Replay struct {
	// Incident, if not nil, is called for every incident that is new or has changed. It
	// must not keep it.
	Incident func(in *incident.Incident)

	cfg       Config
	core      *core.Core
	fabric    *fabric
	collector *core.InProcessCollector
	decoders  map[source.Kind]source.Decoder
	totals    totals

	now        model.Time // of the recording
	lastReport model.Time // when the last report came
	polled     uint64     // reports in memory at the last poll
	err        error      // of the store, the first
}

// NewReplay makes a replay of recordings of the configuration's fabric, in which
// there are reports of some kinds. A store may be nil. Close must follow.
func NewReplay(ctx context.Context, cfg Config, kinds map[source.Kind]uint64, store Store) (r *Replay, err error) {
	return newReplay(ctx, cfg, kinds, store, nil)
}

// NewForwardingReplay makes a replay that decodes, and forwards for analyses in other
// processes.
func NewForwardingReplay(ctx context.Context, cfg Config, kinds map[source.Kind]uint64, to control.Forwarder) (*Replay, error) {
	return newReplay(ctx, cfg, kinds, nil, to)
}

func newReplay(ctx context.Context, cfg Config, kinds map[source.Kind]uint64, store Store, forward control.Forwarder) (r *Replay, err error) {
	r = &Replay{cfg: cfg.clone(), totals: newTotals()}
	if r.fabric, err = readFabric(&cfg); err != nil {
		return nil, err
	}
	r.fabric.addKinds(kinds)
	if r.collector, err = core.NewInProcessCollector(r.fabric.memory(), r.fabric.keyed, cfg.Controller.Step); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	devices, err := livestate.NewDevices(r.fabric.doc.Fabric, r.collector.Memory())
	if err != nil {
		return nil, err
	}
	deps := core.Deps{
		Devices: devices, Records: func(b *record.Batch) { r.addRecords(ctx, b) }, Incident: r.addIncident,
	}
	var last core.LastIDs
	if store != nil {
		deps.Store = store
		if last, err = core.ReadLastIDs(ctx, store); err != nil {
			return nil, err
		}
	}
	c := core.DefaultConfig(r.fabric.controllerConfig(&cfg, last))
	c.WriteQueue, c.Controller.Forward = math.MaxInt32, forward
	if r.core, err = core.New(c, deps, nil); err != nil {
		return nil, err
	}
	r.decoders, err = r.fabric.decoders(&cfg, nil, recordSink{
		report:  func(at model.Time, list dta.ListID, data []byte) { r.core.Controller.IngestReport(at, list, data) },
		reading: func(one *portstat.Reading) { r.core.Controller.IngestReading(max(r.now, r.lastReport), one) },
		sample:  func(one *portstat.Sample) { r.core.Controller.IngestSample(max(r.now, r.lastReport), one) },
		route:   func(u *bgproute.Update) { r.core.Controller.IngestRoute(u) },
		flow:    func(one *portstat.FlowRecord) { r.core.Controller.IngestFlowRecord(max(r.now, r.lastReport), one) },
	})
	return r, err
}

// addKinds adds what reports of a recording lack.
func (f *fabric) addKinds(kinds map[source.Kind]uint64) {
	for _, src := range sources.All() {
		f.noOutPort = f.noOutPort || src.NoOutPort && kinds[src.Kind]+kinds[source.SPAN] > 0
	}
}

// Close frees memory.
func (r *Replay) Close() error { return r.collector.Close() }

// Ports are the UDP ports of the configuration's sources.
func (c *Config) Ports() capture.Ports {
	p := capture.Ports{}
	for kind, src := range c.Sources {
		p[kind] = src.Ports()
	}
	return p
}

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
	switch d.Kind {
	case sources.DTA.Kind:
		r.collector.Receive(at, d.From, d.Payload)
		if r.collector.Stored()-r.polled >= pollAfter {
			return r.poll(at)
		}
	case source.SPAN:
		id, ok := r.fabric.doc.Fabric.ByName(d.Switch)
		if !ok || !r.fabric.doc.Fabric.Node(id).Role.IsSwitch() {
			return fmt.Errorf("mirrored packets of %q, which is not a switch of %s", d.Switch, r.cfg.Topology)
		}
		for _, src := range sources.All() {
			if f, ok := r.decoders[src.Kind].(source.FrameDecoder); ok {
				f.DecodeMirrored(at, id, d.Payload, d.Frame)
				break
			}
		}
	default:
		if dec := r.decoders[d.Kind]; dec != nil {
			dec.Decode(at, d.From, d.Payload)
		}
	}
	return nil
}

func (r *Replay) addIncident(in *incident.Incident) {
	r.totals.addIncident(in)
	if r.Incident != nil {
		r.Incident(in)
	}
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
	for _, src := range sources.All() {
		if d := r.decoders[src.Kind]; d != nil {
			used := func(l source.Loss) bool { return l.Count > 0 }
			if c := d.Counters(); c.In > 0 || slices.ContainsFunc(c.Losses, used) {
				list = append(list, sourceStage(src, c))
			}
		}
	}
	return list
}
