package control

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// Job is work that several hosts do together, such as one training run: while
// one of its flows is slow, all of it waits. A flow is a job's when both of its
// ends are.
type Job struct {
	Name     string
	Hosts    []string       // by name: their addresses are the job's
	Prefixes []netip.Prefix // addresses of others
	learned  bool           // of NCCL's records, not of a configuration
}

// owns reports whether an address is the job's.
func (j *Job) owns(f *topo.Fabric, a model.Addr) bool {
	ip := a.Netip()
	for _, p := range j.Prefixes {
		if p.Contains(ip) {
			return true
		}
	}
	for _, h := range j.Hosts {
		if id, ok := f.ByName(h); ok && f.Owns(id, a) {
			return true
		}
	}
	return false
}

// CheckJobs returns an error for the first job without a unique name, or without a
// flow in the fabric.
func CheckJobs(f *topo.Fabric, list []Job) error {
	seen := map[string]bool{}
	for i := range list {
		switch j := &list[i]; {
		case j.Name == "":
			return fmt.Errorf("jobs: number %d has no name, want one", i+1)
		case seen[j.Name]:
			return fmt.Errorf("jobs: %s is defined twice, want it once", j.Name)
		case len(j.Hosts)+len(j.Prefixes) == 0:
			return fmt.Errorf("jobs: %s has neither hosts nor prefixes, want one of them", j.Name)
		default:
			seen[j.Name] = true
			for _, h := range j.Hosts {
				if id, ok := f.ByName(h); !ok || f.Node(id).Role.IsSwitch() {
					return fmt.Errorf("jobs: %q of %s is not a host of the topology", h, j.Name)
				}
			}
		}
	}
	return nil
}

// SetJobs sets the jobs that run from now on.
func (c *Controller) SetJobs(list []Job) error {
	if err := CheckJobs(c.fabric, list); err != nil {
		return err
	}
	c.collectives.mu.Lock()
	c.collectives.changed = true // which jobs NCCL adds to these
	c.collectives.mu.Unlock()
	c.collectives.configured = list
	c.useJobs(list)
	return nil
}

// useJobs sets the jobs that incidents and queries name.
func (c *Controller) useJobs(list []Job) {
	c.cfg.Jobs, c.jobAddrs = list, nil
	c.jobRecords.Store(newJobRecords(list))
}

// JobRecords returns the jobs that run, a new pointer if they have changed. Other
// goroutines may call it.
func (c *Controller) JobRecords() *[]record.Job { return c.jobRecords.Load() }

// newJobRecords makes the jobs as queries of records name them. Records have the hosts of
// a flow by name; other addresses are compared.
func newJobRecords(list []Job) *[]record.Job {
	out := make([]record.Job, 0, len(list))
	for _, j := range list {
		r := record.Job{Name: j.Name, Hosts: j.Hosts, Learned: j.learned}
		if len(j.Prefixes) > 0 {
			r.Owns = func(a model.Addr) bool {
				return slices.ContainsFunc(j.Prefixes, func(p netip.Prefix) bool { return p.Contains(a.Netip()) })
			}
		}
		out = append(out, r)
	}
	return &out
}

// affectedJobs returns the names of the jobs that own one of the flows, in the
// order of the configuration.
func (c *Controller) affectedJobs(flows []model.FlowKey) []string {
	names := []string{}
	for i := range c.cfg.Jobs {
		j := &c.cfg.Jobs[i]
		for _, k := range flows {
			if j.owns(c.fabric, k.Src) && j.owns(c.fabric, k.Dst) {
				names = append(names, j.Name)
				break
			}
		}
	}
	return names
}

// maxRanks bounds the hosts of a job that an incident names.
const maxRanks = 64

// affectedRanks returns the hosts of each affected job that are ends of the flows, in the
// order of the configuration.
func (c *Controller) affectedRanks(flows []model.FlowKey) (list []api.JobRanks) {
	hosts := make([][]string, len(c.cfg.Jobs))
	for _, k := range flows {
		of := c.jobsAt(k.Dst)
		for _, job := range c.jobsAt(k.Src) {
			if !slices.Contains(of, job) {
				continue
			}
			for _, a := range []model.Addr{k.Src, k.Dst} {
				name := cmp.Or(c.hostName(a), a.String())
				if at, known := slices.BinarySearchFunc(hosts[job], name, compareHosts); !known && len(hosts[job]) < maxRanks {
					hosts[job] = slices.Insert(hosts[job], at, name)
				}
			}
		}
	}
	for i, names := range hosts {
		if len(names) > 0 {
			list = append(list, api.JobRanks{Job: c.cfg.Jobs[i].Name, Hosts: names})
		}
	}
	return list
}

// compareHosts orders h2 before h10.
func compareHosts(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) }
