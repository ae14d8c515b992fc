package gnmi

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/grpcsource"
	"github.com/weft-telemetry/weft/ingest/source"
)

// dialOutListener is the socket of gNMIDialOut.
type dialOutListener struct{ *grpcsource.Listener }

func listenDialOut(c *DialOutConfig, d source.Decoder, g source.Guard) (*dialOutListener, error) {
	l, err := grpcsource.Listen(grpcsource.Config{Listen: c.Listen, TLSCert: c.TLSCert, TLSKey: c.TLSKey, Unit: "messages"}, d, g)
	if err != nil {
		return nil, err
	}
	return &dialOutListener{l}, nil
}

// publisher is the service's method.
type publisher interface {
	publish(stream grpc.ServerStream) error
}

// dialOutService is SONiC's dial_out.proto. No response is sent: switches expect none unless they
// are configured to.
var dialOutService = grpc.ServiceDesc{
	ServiceName: "gnmi.sonic.gNMIDialOut", HandlerType: (*publisher)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Publish", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error { return srv.(publisher).publish(stream) },
	}},
}

// Run is part of source.Listener.
func (l *dialOutListener) Run(ctx context.Context, tap source.Tap) error {
	l.Tap = tap
	return l.Serve(ctx, &dialOutService, l)
}

// publish takes the stream of a switch.
func (l *dialOutListener) publish(stream grpc.ServerStream) error {
	from, err := grpcsource.Sender(stream.Context())
	if err != nil {
		return err
	}
	var m grpcsource.Message
	for {
		err := stream.RecvMsg(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		// Beyond its rate a switch loses messages, and keeps its stream.
		if why := l.Take(from, m.Data); why == translate.AddressNotAllowed {
			return status.Error(codes.PermissionDenied, why.String())
		}
	}
}
