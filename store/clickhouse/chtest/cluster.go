package chtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Cluster are servers with the same tables, and the ZooKeeper that they need.
type Cluster struct {
	Servers   []*Server // all replicas of the first shard, then those of the next
	zooKeeper *exec.Cmd
}

// ClusterName is the cluster's name in the configuration of its servers.
const ClusterName = "fabric"

// StartCluster starts servers with their files below a folder.
func StartCluster(dir string, shards, replicas int) (_ *Cluster, err error) {
	n := shards * replicas
	ports, err := freePorts(1 + 3*n)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	defer func() {
		if err != nil {
			c.Kill()
		}
	}()
	if err := c.startZooKeeper(filepath.Join(dir, "zookeeper"), ports[0]); err != nil {
		return nil, err
	}
	native := ports[1 : 1+n]
	common := fmt.Sprintf(`<zookeeper><node><host>127.0.0.1</host><port>%d</port></node></zookeeper>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl><interserver_http_host>127.0.0.1</interserver_http_host>
<remote_servers><%s>`, ports[0], ClusterName)
	for s := range shards {
		common += `<shard><internal_replication>true</internal_replication>`
		for r := range replicas {
			common += fmt.Sprintf(`<replica><host>127.0.0.1</host><port>%d</port></replica>`, native[s*replicas+r])
		}
		common += `</shard>`
	}
	common += fmt.Sprintf(`</%s></remote_servers>`, ClusterName)
	for i, port := range native {
		s := &Server{port: port}
		c.Servers = append(c.Servers, s)
		own := filepath.Join(dir, fmt.Sprint("server", i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, err
		}
		more := common + fmt.Sprintf(`<macros><shard>%d</shard><replica>%d</replica></macros><interserver_http_port>%d</interserver_http_port>`,
			i/replicas, i%replicas, ports[1+n+i])
		if err := s.configure(own, ports[1+2*n+i], more); err != nil {
			return nil, err
		}
		if err := s.Start(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// startZooKeeper starts Debian's ZooKeeper and waits until it serves.
func (c *Cluster) startZooKeeper(dir string, port int) error {
	data := filepath.Join(dir, "data")
	file := filepath.Join(dir, "zoo.cfg")
	config := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n", data, port)
	if err := errors.Join(os.MkdirAll(data, 0o700), os.WriteFile(file, []byte(config), 0o600)); err != nil {
		return err
	}
	c.zooKeeper = exec.Command("java", "-Xmx256m", "-cp", "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	if err := c.zooKeeper.Start(); err != nil {
		c.zooKeeper = nil
		return fmt.Errorf("%w (Debian's package zookeeper)", err)
	}
	answer := make([]byte, 64)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		l, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue
		}
		_, _ = l.Write([]byte("srvr"))
		_ = l.SetReadDeadline(end)
		n, _ := l.Read(answer)
		_ = l.Close()
		if strings.HasPrefix(string(answer[:n]), "Zookeeper version") {
			return nil
		}
	}
	return errors.New("ZooKeeper does not serve (Debian's package zookeeper)")
}

// Kill kills all of them.
func (c *Cluster) Kill() {
	for _, s := range c.Servers {
		if s.process != nil && s.process.Process != nil {
			s.Kill()
		}
	}
	if c.zooKeeper != nil {
		_ = c.zooKeeper.Process.Kill()
		_ = c.zooKeeper.Wait()
	}
}
