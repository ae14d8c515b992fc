package alerts

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// Alert is an alert as webhooks receive it.
type Alert struct {
	Status     string     `json:"status"` // firing, resolved
	Incident   string     `json:"incident"`
	Cause      string     `json:"cause"`
	Location   string     `json:"location"`
	Severity   string     `json:"severity"`
	Confidence float64    `json:"confidence"`
	Jobs       []string   `json:"jobs"`
	Ranks      []JobRanks `json:"ranks"`
	Summary    string     `json:"summary"`
	Sentence   string     `json:"sentence"`
	Remedy     string     `json:"remedy"`
	Link       string     `json:"link,omitempty"`
	Begin      time.Time  `json:"begin"`
	End        *time.Time `json:"end,omitempty"`
}

// JobRanks is the hosts of a job that an incident affects.
type JobRanks struct {
	Job   string   `json:"job"`
	Hosts []string `json:"hosts"`
}

// newAlert makes an alert of an incident. A body that cannot be read leaves out what
// only it has.
func newAlert(r *record.Incident, link string) Alert {
	var body struct {
		Sentence   string     `json:"sentence"`
		Remedy     string     `json:"remedy"`
		Confidence float64    `json:"confidence"`
		Jobs       []string   `json:"jobs"`
		JobRanks   []JobRanks `json:"job_ranks"`
	}
	_ = json.Unmarshal(r.Body, &body)
	a := Alert{
		Status: "firing", Incident: r.ID, Cause: r.Cause, Location: r.Location, Severity: r.Severity, Confidence: body.Confidence,
		Jobs: append([]string{}, body.Jobs...), Ranks: append([]JobRanks{}, body.JobRanks...), Summary: r.Summary, Sentence: body.Sentence, Remedy: body.Remedy, Begin: r.Begin,
	}
	if link != "" {
		a.Link = strings.TrimSuffix(link, "/") + "/#/incidents/" + r.ID
	}
	return a
}

// isPart reports whether an incident was merged into another, which has an alert.
func isPart(r *record.Incident) bool {
	var body struct {
		MergedInto string `json:"merged_into"`
	}
	return json.Unmarshal(r.Body, &body) == nil && body.MergedInto != ""
}

// same reports whether a receiver would see no difference between two alerts.
func (a *Alert) same(b *Alert) bool {
	return a.Status == b.Status && a.key() == b.key()
}

// key identifies an alert at Alertmanager: its labels.
func (a *Alert) key() string {
	return strings.Join([]string{a.Incident, a.Cause, a.Location, a.Severity, strings.Join(a.Jobs, ",")}, "\x00")
}

// atLeast reports whether a severity is one or more than it.
func atLeast(severity, least string) bool {
	return slices.Index(severities, severity) >= slices.Index(severities, least)
}

// managed is an alert in the form of Alertmanager's API v2.
type managed struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// ranksText names the affected ranks of each job: "training: h3, h14; search: h1".
func ranksText(list []JobRanks) string {
	var jobs []string
	for _, j := range list {
		jobs = append(jobs, j.Job+": "+strings.Join(j.Hosts, ", "))
	}
	return strings.Join(jobs, "; ")
}

// managed returns the alert for Alertmanager at a time. One that fires ends by itself
// after validity, unless it is sent again: a controller that stops leaves none behind.
func (a *Alert) managed(now time.Time, validity time.Duration) managed {
	m := managed{
		Labels: map[string]string{
			"alertname": "WeftIncident", "incident": a.Incident, "cause": a.Cause, "location": a.Location, "severity": a.Severity,
		},
		Annotations: map[string]string{
			"summary": a.Summary, "description": a.Sentence, "remedy": a.Remedy,
			"ranks":      ranksText(a.Ranks),
			"confidence": strconv.FormatFloat(a.Confidence, 'f', 2, 64),
		},
		StartsAt: a.Begin.UTC(), EndsAt: now.Add(validity).UTC(), GeneratorURL: a.Link,
	}
	if len(a.Jobs) > 0 {
		m.Labels["job"] = strings.Join(a.Jobs, ",")
	}
	if m.StartsAt.After(now) {
		m.StartsAt = now.UTC() // clocks differ
	}
	if a.Status == "resolved" {
		m.EndsAt = now.UTC()
	}
	for name, value := range m.Annotations {
		if value == "" {
			delete(m.Annotations, name)
		}
	}
	for name, value := range m.Labels {
		if value == "" { // Alertmanager refuses them
			delete(m.Labels, name)
		}
	}
	return m
}
