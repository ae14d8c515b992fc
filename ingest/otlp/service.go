package otlp

import (
	"context"

	"google.golang.org/grpc"

	"github.com/weft-telemetry/weft/ingest/grpcsource"
)

// service is OTLP's metrics service. An empty response says that all was taken.
var service = grpc.ServiceDesc{
	ServiceName: "opentelemetry.proto.collector.metrics.v1.MetricsService", HandlerType: (*exporter)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var m grpcsource.Message
		if err := decode(&m); err != nil {
			return nil, err
		}
		return &grpcsource.Message{}, srv.(exporter).export(ctx, m.Data)
	}}},
}

type exporter interface {
	export(ctx context.Context, data []byte) error
}
