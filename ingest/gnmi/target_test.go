package gnmi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// sonic is a gNMI target that answers as SONiC's does: names in paths lead to objects in
// Redis, and tables become one JSON object of strings.
type sonic struct {
	gnmipb.UnimplementedGNMIServer
	db    *redis
	alias string // prefix instead of Ethernet in the names of queues; empty: none
}

// startTarget serves a target with TLS and a user, and returns how to stop it.
func startTarget(t *testing.T, s *sonic, listen string, pair tls.Certificate) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.WaitForHandlers(true), grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	gnmipb.RegisterGNMIServer(g, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Serve(l)
	}()
	stop = func() {
		g.Stop()
		<-done
	}
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// Subscribe is part of the gNMI service.
func (s *sonic) Subscribe(stream gnmipb.GNMI_SubscribeServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	if strings.Join(md["username"], "") != "admin" || strings.Join(md["password"], "") != "secret" {
		return status.Error(codes.Unauthenticated, "wrong user or password")
	}
	req, err := stream.Recv()
	if err != nil {
		return err
	}
	list := req.GetSubscribe()
	if list.GetPrefix().GetTarget() != "COUNTERS_DB" || len(list.Subscription) == 0 {
		return status.Errorf(codes.InvalidArgument, "target %q", list.GetPrefix().GetTarget())
	}
	interval := time.NewTicker(time.Duration(list.Subscription[0].SampleInterval))
	defer interval.Stop()
	for {
		for _, sub := range list.Subscription {
			body, err := json.Marshal(s.answer(sub.Path))
			if err != nil {
				return err
			}
			note := &gnmipb.Notification{
				Timestamp: time.Now().UnixNano(), Prefix: list.Prefix,
				Update: []*gnmipb.Update{{Path: sub.Path, Val: &gnmipb.TypedValue{Value: &gnmipb.TypedValue_JsonIetfVal{JsonIetfVal: body}}}},
			}
			if err := stream.Send(&gnmipb.SubscribeResponse{Response: &gnmipb.SubscribeResponse_Update{Update: note}}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-interval.C:
		}
	}
}

// answer is the value of a path.
func (s *sonic) answer(p *gnmipb.Path) any {
	table, port := p.Elem[0].Name, p.Elem[1].Name
	names := func(key, under string) map[string]any {
		all := map[string]any{}
		for name, oid := range s.db.hash(key) {
			of, _, _ := strings.Cut(name, ":")
			if of == port || port == "Ethernet*" {
				if s.alias != "" {
					name = strings.Replace(name, "Ethernet", s.alias, 1)
				}
				all[name] = s.db.hash(under + ":" + oid)
			}
		}
		return all
	}
	if len(p.Elem) == 2 {
		all := names("COUNTERS_PORT_NAME_MAP", table)
		if port == "Ethernet*" {
			return all
		}
		for _, one := range all {
			return one
		}
		return map[string]string{}
	}
	switch p.Elem[2].Name {
	case "Queues", "Pfcwd":
		return names("COUNTERS_QUEUE_NAME_MAP", "COUNTERS")
	case "PriorityGroups":
		return names("COUNTERS_PG_NAME_MAP", table)
	}
	for _, one := range names("COUNTERS_PORT_NAME_MAP", table) {
		return one.(map[string]string)[p.Elem[2].Name] // "" if it is not counted
	}
	return ""
}

// certificate makes a certificate for 127.0.0.1, and the files of it and of a password.
func certificate(t *testing.T) (pair tls.Certificate, ca, password string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ca, password = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "password")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, password
}
