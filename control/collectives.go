package control

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// collectiveMonitor follows jobs by NCCL's own records.
type collectiveMonitor struct {
	mu      sync.Mutex
	recent  *collectives.Recent
	changed bool         // something arrived since jobs were learned
	waiting []*nccl.Dump // of a controller that only decodes: to be forwarded

	learned    model.Time // of the controller's goroutine
	configured []Job      // jobs of the configuration alone, likewise
}

// learnRound is how often jobs are learned from NCCL's records.
const learnRound = time.Second

// IngestCollectives takes records of NCCL, and returns how many of them are of ranks on hosts
// that the fabric does not have. Several goroutines may call it.
func (c *Controller) IngestCollectives(now model.Time, d *nccl.Dump) (unknown int) {
	names := map[string]string{}
	host := func(text string) string {
		name, seen := names[text]
		if !seen {
			name = c.hostOf(text)
			names[text] = name
		}
		if name == "" && text != "" {
			unknown++
			return text
		}
		return name
	}
	for i := range d.Records {
		d.Records[i].Host = host(d.Records[i].Host)
	}
	for i := range d.Members {
		d.Members[i].Host = host(d.Members[i].Host)
	}
	c.collectives.mu.Lock()
	defer c.collectives.mu.Unlock()
	if c.cfg.Forward != nil {
		c.collectives.await(d)
		return unknown
	}
	c.collectives.recent.Add(time.Unix(0, int64(now)), d)
	c.collectives.changed = true
	return unknown
}

// Bounds of what waits to be forwarded, for a step of the clock, and of what is forwarded at once.
const (
	maxWaiting      = 64   // files and reports
	forwardedAtOnce = 4096 // records
)

// await keeps a dump until it is forwarded. Of more than a leader keeps, the newest remain.
func (m *collectiveMonitor) await(d *nccl.Dump) {
	newest := max(len(d.Records)-collectives.DefaultRecentConfig().Records, 0)
	m.waiting = append(m.waiting, &nccl.Dump{Records: d.Records[newest:], Members: d.Members})
	m.waiting = m.waiting[max(len(m.waiting)-maxWaiting, 0):]
}

// forwardCollectives forwards NCCL's records. The ranks of a report stay together.
func (c *Controller) forwardCollectives(now model.Time) {
	m := &c.collectives
	m.mu.Lock()
	list := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	for _, d := range list {
		for records := range slices.Chunk(d.Records, forwardedAtOnce) {
			c.cfg.Forward.Collectives(now, &nccl.Dump{Records: records})
		}
		if len(d.Members) > 0 {
			c.cfg.Forward.Collectives(now, &nccl.Dump{Members: d.Members})
		}
	}
}

// hostOf is the host of the fabric that NCCL names: by its name, with or without a domain, or by
// an address; empty: none.
func (c *Controller) hostOf(text string) string {
	short, _, _ := strings.Cut(text, ".")
	for _, name := range []string{text, short} {
		if c.isHost(name) {
			return name
		}
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return c.hostName(model.AddrOf(a.WithZone("")))
	}
	return ""
}

// isHost reports whether the fabric has a host of that name.
func (c *Controller) isHost(name string) bool {
	id, ok := c.fabric.ByName(name)
	return ok && !c.fabric.Node(id).Role.IsSwitch()
}

// Collectives returns what NCCL's records show. Several goroutines may call it.
func (c *Controller) Collectives() ([]collectives.Group, []collectives.State) {
	c.collectives.mu.Lock()
	defer c.collectives.mu.Unlock()
	return c.collectives.recent.Report()
}

// learnJobs makes jobs of the communicators that NCCL's records show.
func (c *Controller) learnJobs(now model.Time) {
	m := &c.collectives
	if now.Sub(m.learned) < learnRound {
		return
	}
	m.learned = now
	m.mu.Lock()
	forgot := m.recent.Forget(time.Unix(0, int64(now)))
	if !m.changed && !forgot {
		m.mu.Unlock()
		return
	}
	m.changed = false
	groups, states := m.recent.Report()
	m.mu.Unlock()
	list := slices.Clone(m.configured)
	for _, s := range collectives.HostSets(groups, states) {
		if len(list) >= len(m.configured)+maxLearned {
			break
		}
		name := "nccl:" + s.Name
		hosts := slices.DeleteFunc(s.Hosts, func(h string) bool { return !c.isHost(h) })
		slices.SortFunc(hosts, compareHosts)
		of := func(j Job) bool {
			return j.Name == name || !slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(j.Hosts, h) })
		}
		if len(hosts) > 1 && !slices.ContainsFunc(list, of) {
			list = append(list, Job{Name: name, Hosts: hosts, learned: true})
		}
	}
	if !slices.EqualFunc(list, c.cfg.Jobs, func(x, y Job) bool { return x.Name == y.Name && slices.Equal(x.Hosts, y.Hosts) }) {
		c.useJobs(list)
	}
}

// maxLearned bounds the jobs of NCCL's records.
const maxLearned = 64
