package serve

import (
	"context"
	"fmt"
	"io"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
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
	cfg      Config
	store    control.Store // nil: nothing is kept
	fabric   *fabric
	line     *control.InProcessCollector
	control  *control.Controller
	decoders *decoders
	tally    tally

	now    model.Time // of the recording
	heard  model.Time // when the last report came
	looked uint64     // reports in memory at the last look
	batch  record.Batch
	err    error // of the store, the first
	mirror []byte
}

// NewReplay makes a replay of recordings of the configuration's fabric, in which
// reports of some kinds are. A store may be nil. Close must follow.
func NewReplay(ctx context.Context, cfg Config, kinds [capture.NumKinds]uint64, store Store) (r *Replay, err error) {
	r = &Replay{cfg: cfg.clone(), tally: newTally()}
	if r.fabric, err = readFabric(&cfg); err != nil {
		return nil, err
	}
	r.fabric.portless = r.fabric.portless || kinds[capture.ERSPAN]+kinds[capture.SPAN] > 0
	var last numbers
	if store != nil {
		r.store = store
		if last, err = lastNumbers(ctx, store); err != nil {
			return nil, err
		}
	}
	if r.control, err = r.fabric.controller(&cfg, last, control.Output{Records: func(b *record.Batch) { r.keep(ctx, b) }, Incident: r.tally.hear}); err != nil {
		return nil, err
	}
	take := func(at model.Time, list dta.ListID, data []byte) { r.control.IngestReport(at, list, data) }
	if r.decoders, err = r.fabric.decoders(&cfg, false, take); err != nil {
		return nil, err
	}
	r.line, err = control.NewInProcessCollector(r.fabric.memory(), cfg.Controller.Step)
	return r, err
}

// Close frees memory.
func (r *Replay) Close() error { return r.line.Close() }

// Ports are those of the configuration's sockets.
func (c *Config) Ports() capture.Ports {
	p := capture.Ports{DTA: []uint16{dta.Port, c.DTA.Listen.Port()}, INT: []uint16{INTPort}}
	if c.INT.Listen.IsValid() {
		p.INT = append(p.INT, c.INT.Listen.Port())
	}
	return p
}

// INTPort is where INT reports are sent if nobody says otherwise.
const INTPort = 32766

// Run plays everything that a reader has and tells what was found. All of it is
// in the store then. Time ends with the last report, as that of a service does
// that is told to end: what came later is not known, so nothing is missing. On an
// error what was found before it is told.
func (r *Replay) Run(ctx context.Context, in *capture.Reader) (*Found, error) {
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
			err = r.put(&d)
		}
		if err != nil {
			return r.found(in), err
		}
	}
	if err := r.line.Drain(r.heard, r.take); err != nil {
		return r.found(in), err
	}
	r.control.Flush()
	r.control.Tick(r.heard)
	r.write(ctx)
	return r.found(in), r.err
}

// put takes a report when its time has come.
func (r *Replay) put(d *capture.Datagram) error {
	if r.now == 0 {
		r.now, r.heard = d.Time, d.Time // before its first report nothing is known of time
		r.tally.from = d.Time
	}
	if err := r.pass(d.Time); err != nil {
		return err
	}
	r.heard = max(r.heard, d.Time) // a capture's times may go back a little
	at := r.heard
	emit := func(m *mirror.Mirror) {
		r.mirror = m.AppendTo(r.mirror[:0])
		r.control.IngestReport(at, r.fabric.lists.Mirrors.First, r.mirror)
	}
	switch d.Kind {
	case capture.DTA:
		r.line.Receive(at, d.From, d.Payload)
		if r.line.Stored()-r.looked >= lookEvery {
			return r.look(at)
		}
	case capture.INT:
		r.decoders.ints.Datagram(at, d.Payload)
	case capture.ERSPAN:
		r.decoders.erspan.GRE(at, model.AddrOf(d.From.Addr()), d.Payload, emit)
	case capture.SPAN:
		id, ok := r.fabric.doc.Fabric.ByName(d.Switch)
		if !ok || !r.fabric.doc.Fabric.Node(id).Role.IsSwitch() {
			return fmt.Errorf("mirrored packets of %q, which is no switch of %s", d.Switch, r.cfg.Topology)
		}
		r.decoders.erspan.Plain(at, id, d.Payload, d.Frame, emit)
	}
	return nil
}

// lookEvery is after how many reports memory is looked at, even if no time has
// passed: the shortest of its rings hold four times as many.
const lookEvery = 256

// pass lets time go on to an instant. While reports come, the controller looks
// as often as one that serves; in a long silence ever more seldom, so that what
// waits for a time waits at most one part in a hundred longer.
func (r *Replay) pass(to model.Time) error {
	for {
		step := max(r.cfg.Controller.Step, r.now.Sub(r.heard)/100)
		next := r.now.Add(step)
		if next > to {
			return nil
		}
		r.now = next
		if err := r.look(next); err != nil {
			return err
		}
		r.control.Tick(next)
		if r.err != nil {
			return r.err
		}
	}
}

// look hands the controller what is in memory.
func (r *Replay) look(now model.Time) error {
	r.looked = r.line.Stored()
	return r.line.Poll(now, r.take)
}

func (r *Replay) take(id dta.ListID, data []byte) {
	r.control.IngestReport(max(r.now, r.heard), id, data)
}

// maxBatch is how many records are written to the store at once.
const maxBatch = 50_000

// keep counts records and takes a copy for the store.
func (r *Replay) keep(ctx context.Context, b *record.Batch) {
	r.tally.add(b)
	if r.store == nil {
		return
	}
	r.batch.Flows = append(r.batch.Flows, b.Flows...)
	r.batch.Losses = append(r.batch.Losses, b.Losses...)
	r.batch.Ports = append(r.batch.Ports, b.Ports...)
	r.batch.Traces = append(r.batch.Traces, b.Traces...)
	r.batch.Counters = append(r.batch.Counters, b.Counters...)
	r.batch.Diagnoses = append(r.batch.Diagnoses, b.Diagnoses...)
	r.batch.Incidents = append(r.batch.Incidents, b.Incidents...)
	if r.batch.Len() >= maxBatch {
		r.write(ctx)
	}
}

func (r *Replay) write(ctx context.Context) {
	if r.store == nil || r.err != nil || r.batch.Len() == 0 {
		return
	}
	if r.err = r.store.Append(context.WithoutCancel(ctx), &r.batch); r.err == nil {
		r.tally.kept += uint64(r.batch.Len())
	}
	r.batch = record.Batch{} // the store may keep what it took
}

// stages is the account of the pipeline, as a service's health has it.
func (r *Replay) stages() []api.Stage {
	list := control.PipelineStages(r.line.Intake(), r.line.Lost(), r.control.Stats())
	if st := r.decoders.ints.Stats(); st.Datagrams > 0 {
		list = append(list, intStage(intCounts{reader: st}))
	}
	if st := r.decoders.erspan.Stats(); st.Packets > 0 {
		list = append(list, erspanStage(st, 0))
	}
	return list
}
