package nccl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

const (
	// rasProtocol is the version of the protocol that ncclras of NCCL 2.28 speaks. Services
	// answer with their own, and take any.
	rasProtocol = 2
	// maxLine bounds a line of an answer before the report.
	maxLine = 1 << 10
	// maxReport bounds a report: 400 bytes for each of 16,384 ranks, and as many again.
	maxReport = 16 << 20
	// maxMembers bounds the ranks of a report.
	maxMembers = 1 << 14
)

// Reasons why a report cannot be had.
var (
	errNoJSON  = errors.New("the RAS service has no JSON, which NCCL has from 2.28.7 on")
	errTooLong = fmt.Errorf("the report is longer than %d bytes, or has more than %d ranks", maxReport, maxMembers)
	errAnswer  = errors.New("not an answer of a RAS service")
)

// askRAS asks a RAS service for its report, as ncclras -v -f json does.
func askRAS(ctx context.Context, address string, timeout time.Duration) (*nccl.Dump, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // past: reads end
	defer stop()
	return converse(conn, timeout)
}

// converse speaks the client's side: commands in lines, each answered by a line, and the
// report of the last until the service closes the connection.
func converse(conn io.ReadWriter, timeout time.Duration) (*nccl.Dump, error) {
	all := &io.LimitedReader{R: conn, N: maxReport}
	in := bufio.NewReaderSize(all, maxLine)
	line, err := command(conn, in, fmt.Sprintf("CLIENT PROTOCOL %d", rasProtocol))
	if err != nil {
		return nil, err
	}
	if !hasPrefixFold(line, "SERVER PROTOCOL ") {
		return nil, fmt.Errorf("%w: %.80q", errAnswer, line)
	}
	// The service waits for ranks that do not answer, and reports without them then.
	wait := max(int(timeout/time.Second)/2, 1)
	if line, err = command(conn, in, fmt.Sprintf("TIMEOUT %d", wait)); err != nil {
		return nil, err
	}
	if !strings.EqualFold(line, "OK") {
		return nil, fmt.Errorf("%w: %.80q", errAnswer, line)
	}
	if line, err = command(conn, in, "SET FORMAT json"); err != nil {
		return nil, err
	}
	switch {
	case hasPrefixFold(line, "ERROR"):
		return nil, errNoJSON
	case !strings.EqualFold(line, "OK"):
		return nil, fmt.Errorf("%w: %.80q", errAnswer, line)
	}
	if _, err := io.WriteString(conn, "VERBOSE STATUS\n"); err != nil {
		return nil, err
	}
	d, err := nccl.Read(in, -1, maxMembers)
	switch {
	case all.N <= 0 || err == nil && d.Full:
		return nil, errTooLong
	case err != nil:
		return nil, err
	case len(d.Records) > 0 || d.Grows:
		return nil, errAnswer
	}
	return d, nil
}

// command sends a line and reads the line that answers it.
func command(w io.Writer, in *bufio.Reader, text string) (string, error) {
	if _, err := io.WriteString(w, text+"\n"); err != nil {
		return "", err
	}
	line, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("%w: a line of more than %d bytes", errAnswer, maxLine)
	case err != nil:
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
