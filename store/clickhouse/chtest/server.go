// Package chtest runs a clickhouse-server for tests, as Debian has it, or a present one: chDB.
package chtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Server is a server on loopback. To start one takes about a second: tests share it.
type Server struct {
	command []string
	port    int
	process *exec.Cmd
}

// Library is the environment variable with the file libchdb.so. If it is set, servers are chDB.
const Library = "WEFT_TEST_CHDB"

// New makes a server with its files in a folder. Start starts it.
func New(dir string) (*Server, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	s := &Server{port: ports[0]}
	if library := os.Getenv(Library); library != "" {
		program := filepath.Join(dir, "chdb")
		s.command = []string{program, library, filepath.Join(dir, "data"), s.Address()}
		build := exec.Command("go", "build", "-o", program, "github.com/weft-telemetry/weft/store/clickhouse/chtest/chdb")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		return s, nil
	}
	return s, s.configure(dir, ports[1], "")
}

// freePorts are TCP ports of loopback that are free.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // when all are found
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// configure writes the files of Debian's server, with more of its configuration.
func (s *Server) configure(dir string, http int, more string) error {
	file := filepath.Join(dir, "config.xml")
	s.command = []string{"clickhouse-server", "--config-file=" + file}
	config := fmt.Sprintf(`<yandex><logger><level>error</level><log>%[1]s/log</log><errorlog>%[1]s/errors</errorlog></logger>
<tcp_port>%[2]d</tcp_port><http_port>%[3]d</http_port><listen_host>127.0.0.1</listen_host>
<path>%[1]s/data/</path><tmp_path>%[1]s/tmp/</tmp_path><users_config>%[1]s/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>268435456</mark_cache_size>%[4]s</yandex>`, dir, s.port, http, more)
	const users = `<yandex><profiles><default><load_balancing>in_order</load_balancing></default></profiles><quotas><default/></quotas><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>`
	return errors.Join(os.WriteFile(file, []byte(config), 0o600), os.WriteFile(filepath.Join(dir, "users.xml"), []byte(users), 0o600))
}

// IsChDB reports whether it is chDB.
func (s *Server) IsChDB() bool { return s.command[0] != "clickhouse-server" }

// Start starts the server and waits until it listens.
func (s *Server) Start() error {
	s.process = exec.Command(s.command[0], s.command[1:]...)
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("%w (scripts/need clickhouse-server:clickhouse-server installs it)", err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Address())
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			s.Kill()
			return fmt.Errorf("clickhouse-server does not listen: %w", err)
		}
	}
}

// Kill kills the server as a failing machine does.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Address is where it listens for its native protocol.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }
