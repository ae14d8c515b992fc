package collector

import (
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Writer writes reports of this process to the collector's memory, as those that arrive
// at its sockets are. It is for one goroutine.
type Writer struct{ router *translate.Router }

// NewWriter returns a writer to the memory of a collector that has its own. It must not be
// used once Config.Drained has been called.
func (c *Collector) NewWriter() *Writer {
	targets := make([]translate.Target, len(c.shards))
	for i, s := range c.shards {
		targets[i] = s
	}
	return &Writer{router: translate.NewRouter(translate.Limiter{}, targets...)}
}

// Put writes reports, whose memory the collector must have: there is no rate limit, so none
// is refused.
func (w *Writer) Put(now model.Time, reports []dta.Report) {
	for i := range reports {
		w.router.Put(now, &reports[i])
	}
	w.router.Flush(now)
}
