package otlp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
)

// service is OTLP's metrics service. Requests stay bytes: they are decoded once, and
// recorded as they came. An empty response says that all was taken.
var service = grpc.ServiceDesc{
	ServiceName: "opentelemetry.proto.collector.metrics.v1.MetricsService", HandlerType: (*exporter)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var m rawMessage
		if err := decode(&m); err != nil {
			return nil, err
		}
		return &rawMessage{}, srv.(exporter).export(ctx, m.data)
	}}},
}

type exporter interface {
	export(ctx context.Context, data []byte) error
}

// rawCodec leaves messages as they are.
type rawCodec struct{}

type rawMessage struct{ data []byte }

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(*rawMessage)
	if !ok {
		return nil, errors.New("otlp: not a raw message")
	}
	return m.data, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(*rawMessage)
	if !ok {
		return errors.New("otlp: not a raw message")
	}
	m.data = append(m.data[:0], data...)
	return nil
}

// limitConnections closes connections beyond maxConnections at once.
func limitConnections(l net.Listener, refused *atomic.Uint64) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, maxConnections), refused: refused}
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
