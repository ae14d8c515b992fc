package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// printFound prints the findings of a replay.
func printFound(w io.Writer, f *serve.Summary, store string) error {
	for _, text := range f.Broken {
		fmt.Fprintln(w, text)
	}
	if f.Packets == 0 {
		_, err := fmt.Fprintln(w, "no packets")
		return err
	}
	fmt.Fprintf(w, "%s from %s to %s (%s)\n", plural.Count(f.Packets, "packet"), clock(f.From), clock(f.To),
		model.FormatDuration(f.To.Sub(f.From)))
	var found []string
	count := func(kind, title string) {
		if n := f.Reports[kind]; n > 0 {
			found = append(found, fmt.Sprintf("%d %s", n, title))
		}
	}
	for _, src := range sources.All() {
		count(string(src.Kind), src.Title)
	}
	count("span", "plain mirrors")
	if len(found) == 0 {
		found = []string{"none"}
	}
	fmt.Fprintf(w, "reports: %s; %d other packets, %d rejected when recorded\n", strings.Join(found, ", "), f.Reports["other"], f.Reports["rejected"])
	fmt.Fprintf(w,
		"%s in %s, %s lost; %s (%d arrived, %d lost, %d looped); %s; %s\n",
		plural.Count(f.Flows, "flow"), plural.Count(f.FlowSlots, "slot"), plural.Count(f.LostPackets, "packet"), plural.Count(sumOf(f.Traces), "trace"), f.Traces["arrived"], f.Traces["lost"], f.Traces["looped"], plural.Count(f.Ports, "port"), plural.Count(f.Diagnoses, "diagnosis"))
	if store != "" {
		fmt.Fprintf(w, "%s written to %s\n", plural.Count(f.Kept, "record"), store)
	}
	var lost table
	lost.row("LOST", "", "STAGE", "REASON")
	for _, s := range f.Stages {
		for _, l := range s.Losses {
			if l.Count > 0 {
				lost.row(l.Count, s.Unit, s.Name, strings.TrimSuffix(l.Reason+", "+l.About, ", "))
			}
		}
	}
	fmt.Fprintln(w)
	if len(lost.rows) == 1 {
		fmt.Fprintln(w, "no report was lost before the analyses")
	} else if err := lost.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return printIncidents(w, &target{}, f.Incidents)
}

func sumOf(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

// surveyView counts the packets of files by kind.
type surveyView struct {
	From    time.Time         `json:"from"`
	To      time.Time         `json:"to"`
	Packets uint64            `json:"packets"`
	Reports map[string]uint64 `json:"reports"`
	Cut     uint64            `json:"truncated"`
	Broken  []string          `json:"malformed_files"`
}

func (a *app) printSurvey(w io.Writer, s *capture.Summary) error {
	v := surveyView{
		From: wall(s.From), To: wall(s.To), Packets: s.Packets,
		Reports: map[string]uint64{"rejected": s.Rejected}, Cut: s.Truncated, Broken: []string{},
	}
	for _, k := range sources.Kinds() {
		v.Reports[string(k)] = s.Kinds[k]
	}
	for _, err := range s.Broken {
		v.Broken = append(v.Broken, err.Error())
	}
	if a.format == "json" {
		return printJSON(w, v)
	}
	for _, text := range v.Broken {
		fmt.Fprintln(w, text)
	}
	if v.Packets == 0 {
		_, err := fmt.Fprintln(w, "no packets")
		return err
	}
	fmt.Fprintf(w, "%s from %s to %s (%s)\n\n", plural.Count(v.Packets, "packet"), clock(v.From), clock(v.To),
		model.FormatDuration(v.To.Sub(v.From)))
	var t table
	t.row("PACKETS", "KIND")
	count := func(key, what string) {
		if n := v.Reports[key]; n > 0 {
			t.row(n, what)
		}
	}
	for _, src := range sources.All() {
		count(string(src.Kind), src.Title)
	}
	count("span", "mirrored packets")
	count("other", "other packets")
	count("rejected", "reports rejected when recorded")
	if v.Cut > 0 {
		t.row(v.Cut, "reports truncated by the capture")
	}
	return t.print(w)
}

func wall(t model.Time) time.Time { return time.Unix(0, int64(t)).UTC() }
