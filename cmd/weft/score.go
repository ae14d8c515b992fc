package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/scenario/corpus"
)

func (a *app) scoreCommand() *cobra.Command {
	var truth, recordings, out string
	cmd := &cobra.Command{
		Use:   "score [ANSWERS]",
		Short: "Score any tool's answers about recorded incidents",
		Long: `Compare what a tool says about recorded incidents with what was injected. ANSWERS is a
JSON file: {"tool": "…", "answers": [{"recording", "cause", "place"}]}; a recording in
which the tool found nothing has no answer. An answer is right if it has the cause and
one of the places. Every other answer is wrong, as an operator gets an alert for each.

With --replay Weft answers itself: it replays the recordings of a directory, and
--out writes its answers as an example of the format.

The exit code is 0 if every incident was found and nothing else, and 1 if not.`,
		Example: `  weft score answers.json --truth examples/incidents/truth.json
  weft score --replay examples/incidents
  weft score --replay examples/incidents --out answers.json -o json`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (recordings != "") {
				return usagef("want either ANSWERS or --replay")
			}
			if truth == "" {
				if recordings == "" {
					return usagef("ANSWERS needs --truth, such as examples/incidents/truth.json")
				}
				truth = filepath.Join(recordings, "truth.json")
			}
			t, err := corpus.ReadTruth(truth)
			if err != nil {
				return usageError{err}
			}
			var answers *corpus.Answers
			if recordings != "" {
				answers, err = replayCorpus(cmd.Context(), recordings, t)
			} else if answers, err = corpus.ReadAnswers(args[0], t); err != nil {
				err = usageError{err}
			}
			if err != nil {
				return err
			}
			if out != "" {
				if err := writeFile(out, func(w io.Writer) error { return printJSON(w, answers) }); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			s := corpus.Judge(t, answers)
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), s)
			} else {
				err = printCorpusScore(cmd.OutOrStdout(), s)
			}
			if err == nil && !s.Perfect() {
				err = errMissed
			}
			return err
		},
	}
	cmd.Flags().StringVar(&truth, "truth", "", "what was injected (default: truth.json of --replay)")
	cmd.Flags().StringVar(&recordings, "replay", "", "replay the recordings of this directory, and score Weft's own answers")
	cmd.Flags().StringVar(&out, "out", "", "write the scored answers to this file")
	return cmd
}

// replayCorpus returns Weft's answers.
func replayCorpus(ctx context.Context, dir string, t *corpus.Truth) (*corpus.Answers, error) {
	a := &corpus.Answers{Tool: "weft", Answers: []corpus.Answer{}}
	for _, r := range t.Recordings {
		found, err := replayOne(ctx, filepath.Join(dir, r.Name))
		if err != nil {
			return nil, fmt.Errorf("recording %s: %w", r.Name, err)
		}
		for _, i := range found.Incidents {
			if i.Severity != "notice" {
				a.Answers = append(a.Answers, corpus.Answer{Recording: r.Name, Cause: i.Cause, Place: i.Location})
			}
		}
	}
	return a, nil
}

// replayOne analyses the recording of a directory.
func replayOne(ctx context.Context, dir string) (_ *serve.Summary, err error) {
	cfg, err := serve.Source{Flags: map[string]string{"topology": filepath.Join(dir, "reports.topology.yaml")}}.Load()
	if err != nil {
		return nil, err
	}
	file := capture.Input{Path: filepath.Join(dir, "reports.pcapng.gz")}
	return analyseFiles(ctx, cfg, nil, []capture.Input{file})
}

func printCorpusScore(w io.Writer, s *corpus.Score) error {
	var t table
	t.row("RECORDING", "SOURCES", "CAUSE", "PLACE", "VERDICT", "ANSWERS")
	for i := range s.Recordings {
		r := &s.Recordings[i]
		var answers []string
		for _, x := range r.Answers {
			answers = append(answers, x.Cause+" at "+x.Place)
		}
		t.row(r.Name, r.Sources, dash(r.Cause), dash(strings.Join(r.Places, ", ")), r.Verdict, dash(strings.Join(answers, "; ")))
	}
	if err := t.print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s: %d of %d incidents found with cause and place, %d at the place; %d of %d answers wrong; precision %.2f, recall %.2f\n",
		s.Tool, s.Right, s.Incidents, s.Place, s.Wrong, s.Answers, s.Precision, s.Recall)
	return err
}
