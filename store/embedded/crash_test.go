package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

// TestMain is also the child of tests that need another process.
func TestMain(m *testing.M) {
	path := os.Getenv("WEFT_STORE_FILE")
	var err error
	switch os.Getenv("WEFT_STORE_TEST") {
	case "open":
		_, err = embedded.Open(path, testConfig())
	case "append":
		err = appendForEver(path)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// crashRows is the number of rows of each of two kinds in batch n: few and many, so
// that both of DuckDB's code paths for a batch are tested.
func crashRows(n int) int { return []int{1, 10, 500, 5000}[n%4] }

// appendForEver prints the number of each batch once it is stored. Every batch also
// updates one incident; some are followed by maintenance.
func appendForEver(path string) error {
	s, err := embedded.Open(path, testConfig())
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(os.Getenv("WEFT_STORE_NEXT"))
	if err != nil {
		return err
	}
	for ; ; n++ {
		b := &record.Batch{Incidents: []record.Incident{{ID: "one", Begin: base, Updated: base.Add(time.Duration(n)), Summary: strconv.Itoa(n)}}}
		for i := range crashRows(n) {
			at := base.Add(time.Duration(n)*time.Second + time.Duration(i))
			b.Ports = append(b.Ports, record.PortSample{Time: at, Node: strconv.Itoa(n), Port: 1, Samples: 1})
			b.Losses = append(b.Losses, record.Loss{Time: at, From: strconv.Itoa(n), Packets: uint64(i)})
		}
		if err := s.Append(context.Background(), b); err != nil {
			return err
		}
		fmt.Println(n)
		if n%5 == 4 {
			if _, err := s.Maintain(context.Background(), base); err != nil {
				return err
			}
		}
	}
}

// TestKill kills a process that appends, at random times: no acknowledged batch is
// missing, and no batch is incomplete.
func TestKill(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 5
	}
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	r := newRand(uint64(time.Now().UnixNano()))
	acknowledged, kept := -1, -1
	for kill := range kills {
		acknowledged = max(acknowledged, runAndKill(t, path, kept+1, kill%3 == 0, time.Duration(r.IntN(80))*time.Millisecond))
		kept = checkBatches(t, path, acknowledged)
		if t.Failed() {
			t.Fatalf("after kill %d", kill)
		}
	}
	t.Logf("%d kills, %d batches acknowledged, %d kept", kills, acknowledged+1, kept+1)
	if acknowledged < kills/2 {
		t.Errorf("only %d batches were acknowledged in %d lives; the test proves little", acknowledged+1, kills)
	}
}

// runAndKill lets a child append until some time after its first acknowledgement
// or, with anyTime, after its start, so that opening is included. It returns the
// last acknowledged number.
func runAndKill(t *testing.T, path string, next int, anyTime bool, after time.Duration) (last int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WEFT_STORE_TEST=append", "WEFT_STORE_FILE="+path, "WEFT_STORE_NEXT="+strconv.Itoa(next))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last = -1
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if anyTime {
		kill.Reset(2 * after)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Errorf("the child says %q", lines.Text())
			break
		}
		if last < 0 && !anyTime {
			kill.Reset(after)
		}
		last = n
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(exit.Error(), "killed") {
		t.Errorf("the child ended with %v; want it killed", err)
	}
	return last
}

// checkBatches opens the file and returns its last batch.
func checkBatches(t *testing.T, path string, acknowledged int) int {
	t.Helper()
	s := open(t, path, testConfig())
	defer mustClose(t, s)
	p, err := s.Incidents(context.Background(), record.Query{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	last, counts := -1, batchCounts(t, path)
	if len(p.Items) > 0 {
		last, _ = strconv.Atoi(p.Items[0].Summary)
	}
	if last < acknowledged {
		t.Fatalf("the last batch kept is %d; %d was acknowledged", last, acknowledged)
	}
	for n := range last + 1 {
		if got, want := counts[strconv.Itoa(n)], crashRows(n); got != [3]int{want, want, want} {
			t.Errorf("batch %d has samples, losses and samples in its rollup %v; want %d of each", n, got, want)
		}
	}
	if len(counts) != last+1 {
		t.Errorf("%d batches are there; want %d", len(counts), last+1)
	}
	return last
}

// batchCounts counts the rows of each batch: samples, losses, samples of the
// rollup.
func batchCounts(t *testing.T, path string) map[string][3]int {
	t.Helper()
	db := sqlOpen(t, path) // shares the database with the Store
	defer db.Close()
	rows, err := db.Query(`SELECT batch, sum(a)::BIGINT, sum(b)::BIGINT, sum(c)::BIGINT FROM (
		SELECT node AS batch, 1 AS a, 0 AS b, 0 AS c FROM ports
		UNION ALL SELECT from_node, 0, 1, 0 FROM losses
		UNION ALL SELECT node, 0, 0, samples FROM ports_1m) GROUP BY batch`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	counts := map[string][3]int{}
	for rows.Next() {
		var batch string
		var n [3]int
		if err := rows.Scan(&batch, &n[0], &n[1], &n[2]); err != nil {
			t.Fatal(err)
		}
		counts[batch] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}
