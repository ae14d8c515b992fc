package bench

import (
	"bufio"
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/duckdb/duckdb-go/v2"
)

// inserter is a system that stores reports out of those it was started with:
// keys of keySize bytes with values of 4, back to back. insert returns when they
// are stored.
type inserter struct {
	insert func(from, to int) error
	close  func()
}

const (
	rowSize = keySize + 4
)

// freePort returns a free TCP port.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// server starts an installed program and waits until its port accepts connections.
func server(ctx context.Context, port int, name string, args ...string) (stop func(), err error) {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stop = func() {
		_ = cmd.Process.Kill()
		<-exited
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return stop, conn.Close()
		}
		select {
		case err := <-exited:
			return nil, fmt.Errorf("%s ended: %w", name, err)
		case <-ctx.Done():
			stop()
			return nil, ctx.Err()
		default:
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("%s does not listen on port %d after 30 s", name, port)
		}
	}
}

// startRedis starts Redis in memory, with pipelined SETs.
func startRedis(ctx context.Context, all []byte) (*inserter, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	stop, err := server(ctx, port, "redis-server", "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no")
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		stop()
		return nil, err
	}
	replies := bufio.NewReaderSize(conn, 1<<16)
	var commands []byte
	return &inserter{
		insert: func(from, to int) error {
			rows := all[from*rowSize : to*rowSize]
			// Encoding for Redis is not Redis's work, but its client's: a
			// report arrives as it is, so it is measured. Writing and reading
			// overlap, or a long pipeline would stall.
			n := len(rows) / rowSize
			sent := make(chan error, 1)
			go func() {
				for len(rows) > 0 {
					part := rows[:min(len(rows), 1000*rowSize)]
					rows = rows[len(part):]
					commands = commands[:0]
					for ; len(part) > 0; part = part[rowSize:] {
						commands = append(commands, "*3\r\n$3\r\nSET\r\n$13\r\n"...)
						commands = append(commands, part[:keySize]...)
						commands = append(commands, "\r\n$4\r\n"...)
						commands = append(commands, part[keySize:rowSize]...)
						commands = append(commands, "\r\n"...)
					}
					if _, err := conn.Write(commands); err != nil {
						sent <- err
						return
					}
				}
				sent <- nil
			}()
			var ok [5]byte
			for range n {
				if _, err := io.ReadFull(replies, ok[:]); err != nil {
					return errors.Join(err, <-sent)
				}
				if !bytes.Equal(ok[:], []byte("+OK\r\n")) {
					return fmt.Errorf("redis answers %q", ok)
				}
			}
			return <-sent
		},
		close: func() { _ = conn.Close(); stop() },
	}, nil
}

// startDuckDB starts DuckDB's appender into a file.
func startDuckDB(ctx context.Context, all []byte) (*inserter, error) {
	dir, err := os.MkdirTemp("", "weft-bench-duckdb")
	if err != nil {
		return nil, err
	}
	connector, err := duckdb.NewConnector(filepath.Join(dir, "reports.db"), func(e driver.ExecerContext) error {
		_, err := e.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS reports (key BLOB, value UINTEGER)", nil)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, errors.Join(err, connector.Close(), os.RemoveAll(dir))
	}
	appender, err := duckdb.NewAppenderFromConn(conn, "", "reports")
	if err != nil {
		return nil, errors.Join(err, conn.Close(), connector.Close(), os.RemoveAll(dir))
	}
	return &inserter{
		insert: func(from, to int) error {
			rows := all[from*rowSize : to*rowSize]
			for ; len(rows) > 0; rows = rows[rowSize:] {
				if err := appender.AppendRow(rows[:keySize], value(rows)); err != nil {
					return err
				}
			}
			return appender.Flush()
		},
		close: func() {
			_ = errors.Join(appender.Close(), conn.Close(), connector.Close(), os.RemoveAll(dir))
		},
	}, nil
}

func value(row []byte) uint32 {
	return uint32(row[13])<<24 | uint32(row[14])<<16 | uint32(row[15])<<8 | uint32(row[16])
}

// startClickHouse starts ClickHouse with its native protocol and one block per
// insert, into a MergeTree.
func startClickHouse(ctx context.Context, all []byte) (_ *inserter, err error) {
	dir, err := os.MkdirTemp("", "weft-bench-clickhouse")
	if err != nil {
		return nil, err
	}
	var stop func()
	defer func() {
		if err != nil {
			if stop != nil {
				stop()
			}
			_ = os.RemoveAll(dir)
		}
	}()
	port, err1 := freePort()
	http, err2 := freePort()
	config := fmt.Sprintf(`<yandex><logger><level>error</level><log>%[1]s/log</log><errorlog>%[1]s/errors</errorlog></logger>
<tcp_port>%[2]d</tcp_port><http_port>%[3]d</http_port><listen_host>127.0.0.1</listen_host>
<path>%[1]s/data/</path><tmp_path>%[1]s/tmp/</tmp_path><users_config>%[1]s/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>1073741824</mark_cache_size></yandex>`, dir, port, http)
	const users = `<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>`
	if err := errors.Join(
		err1, err2,
		os.WriteFile(filepath.Join(dir, "config.xml"), []byte(config), 0o644),
		os.WriteFile(filepath.Join(dir, "users.xml"), []byte(users), 0o644),
	); err != nil {
		return nil, err
	}
	if stop, err = server(ctx, port, "clickhouse-server",
		"--config-file="+filepath.Join(dir, "config.xml")); err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{fmt.Sprintf("127.0.0.1:%d", port)}})
	if err != nil {
		return nil, err
	}
	if err := conn.Exec(ctx, "CREATE TABLE reports (key FixedString(13), value UInt32) ENGINE = MergeTree ORDER BY key"); err != nil {
		return nil, err
	}
	var keys []string
	var values []uint32
	return &inserter{
		insert: func(from, to int) error {
			rows := all[from*rowSize : to*rowSize]
			batch, err := conn.PrepareBatch(ctx, "INSERT INTO reports (key, value)")
			if err != nil {
				return err
			}
			// Whole columns: row by row takes several times as long.
			keys, values = keys[:0], values[:0]
			for ; len(rows) > 0; rows = rows[rowSize:] {
				keys, values = append(keys, string(rows[:keySize])), append(values, value(rows))
			}
			if err := errors.Join(batch.Column(0).Append(keys), batch.Column(1).Append(values)); err != nil {
				return err
			}
			return batch.Send()
		},
		close: func() { _ = conn.Close(); stop(); _ = os.RemoveAll(dir) },
	}, nil
}

// installed returns an error that says why a comparison is skipped, if a program
// is not installed.
func installed(name string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s is not installed (Debian has it: apt-get install %[1]s)", name)
	}
	return nil
}
