package source

import (
	"net"
	"sync"
	"sync/atomic"
)

// LimitConnections closes connections beyond a number at once, and counts them.
func LimitConnections(l net.Listener, most int, refused *atomic.Uint64) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, most), refused: refused}
}

type limited struct {
	net.Listener
	free    chan struct{}
	refused *atomic.Uint64
}

// Accept is part of net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &counted{Conn: c, release: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			l.refused.Add(1)
			c.Close()
		}
	}
}

type counted struct {
	net.Conn
	release func()
}

// Close is part of net.Conn.
func (c *counted) Close() error {
	c.release()
	return c.Conn.Close()
}
