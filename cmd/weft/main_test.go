package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-telemetry/weft/internal/race"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weft": main, "weft-invented": mainInvented})
}

// TestScripts runs the command lines under testdata/script as a user would.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// TestSimulatingScripts runs those of commands that simulate, in one goroutine.
func TestSimulatingScripts(t *testing.T) {
	race.LeaveToPlainRun(t)
	runScripts(t, "testdata/simulating")
}

func runScripts(t *testing.T, dir string) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Setup:               func(env *testscript.Env) error { env.Setenv("EXAMPLES", examples); return nil },
		Dir:                 dir,
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":      exitCode,
			"isjson":    isJSON,
			"retry":     retry,
			"until":     until,
			"memory":    memory,
			"storefile": storeFile, "damagefile": damageFile, "clickhouse": startClickHouse, "samestore": sameStore,
			"recording": recording,
		},
	})
}

// exitCode runs weft and compares its exit code: "code 2 weft topo show x".
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARGUMENT…")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%q exits with %d; want %s", args[1:], got, args[0])
	}
}

// isJSON checks that a file, or the last "stdout", is one JSON value.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: isjson FILE")
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s is not JSON: %v", args[0], err)
	}
}

// retry runs a command until it succeeds, at most a minute: "retry weft collect
// status".
func retry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: retry COMMAND ARGUMENT…")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q fails for a minute: %v", args, err)
		}
	}
}

// until runs a command until its output matches, at most a minute: "until ', [1-9]\d* reports stored' weft collect status".
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND ARGUMENT…")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		retry(ts, false, args[1:])
		if out := ts.ReadFile("stdout"); want.MatchString(out) {
			return
		} else if time.Now().After(deadline) {
			ts.Fatalf("%q prints for a minute\n%s\nwant %s", args[1:], out, args[0])
		}
	}
}
