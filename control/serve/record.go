package serve

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// openRecorder opens the recording, if there is one.
func (s *socketInput) openRecorder() (err error) {
	if s.cfg.Record.Path == "" {
		return nil
	}
	if s.recorder, err = capture.NewRecorder(s.cfg.Record, s.log); err != nil {
		return fmt.Errorf("record.file: %w", err)
	}
	return nil
}

// record passes a received datagram to the recorder.
func (s *socketInput) record(k source.Kind, taken bool, at model.Time, from, to netip.AddrPort, payload []byte) {
	if s.recorder != nil {
		s.recorder.RecordDatagram(k, taken, at, from, to, payload)
	}
}

// recordStage accounts for recorded reports.
func recordStage(st capture.Stats) api.Stage {
	return api.Stage{
		Name: "recording", Title: "Recording", Unit: "datagrams", In: st.Datagrams, Out: st.Written, Queued: int(st.Waiting),
		Losses: []api.StageLoss{
			{Reason: "shed", About: "the disk was too slow", Count: st.Shed},
			{Reason: "failed", About: "the disk returned an error", Count: st.Failed},
			{Reason: "rejected", About: "rejected reports, which record.rejected does not include", Count: st.Skipped, Expected: true},
		},
	}
}
