package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario/live"
)

// verifyFlags are the flags of weft incidents verify.
type verifyFlags struct {
	targetFlags
	timeout time.Duration
}

func (a *app) verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify ID", Short: "Check whether the fault of an incident is still there", Example: "  weft incidents verify i12",
		Long: `Check whether the fault of an incident is still there, after a repair. Probes like an
affected flow are sent, where hosts of the fabric send probes; all sources are
watched until evidence can no longer be late. An incident whose fault is gone is
closed, one whose fault is still there is opened again. Who asked, and the result, are
kept in the controller's store and audit log, and shown in the incident's timeline.

The exit code is 3 if the fault is still there, and 1 if nothing shows it.`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args[0]) },
	}
	f.register(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long to wait for the result; the check goes on")
	return cmd
}

func (f *verifyFlags) run(a *app, cmd *cobra.Command, id string) error {
	if f.timeout <= 0 {
		return usagef("--timeout %v, want above 0", f.timeout)
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if t.isScenario() {
		return usagef("verify a scenario's incident, want a controller: nothing of a run is kept")
	}
	v, err := t.VerifyIncident(cmd.Context(), id)
	if err != nil {
		return t.explain(err)
	}
	if v, err = awaitVerification(cmd.Context(), t, id, v.Begin, f.timeout); err != nil {
		return err
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), v)
	} else {
		text := ""
		if v.SeenAs != "" {
			text = "; see " + v.SeenAs
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s: %s%s\n", id, v.Outcome, v.Text, text)
	}
	switch {
	case err != nil:
		return err
	case v.Outcome == "persists":
		return errFault
	case v.Outcome == "unknown":
		return errors.New("nothing shows whether the fault is still there")
	}
	return nil
}

// verifyInterval is how often the result of a verification is asked for.
const verifyInterval = 200 * time.Millisecond

// awaitVerification waits for the result of a verification that began at a time.
func awaitVerification(ctx context.Context, t *target, id string, begin time.Time, most time.Duration) (api.Verification, error) {
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	for {
		d, err := t.Incident(ctx, id)
		if v := d.Verification; err == nil && v != nil && v.State == "done" && !v.Begin.Before(begin) {
			return *v, nil
		}
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return api.Verification{}, fmt.Errorf("verify %s: no result within %v; weft incidents %s shows it when it is there", id, most, id)
		case err != nil:
			return api.Verification{}, t.explain(err)
		}
		select {
		case <-time.After(verifyInterval):
		case <-ctx.Done():
		}
	}
}
