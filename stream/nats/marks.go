package nats

import (
	"context"
	"errors"
	"fmt"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Marks are values by name that all members see, and that survive them.
type Marks struct{ kv jetstream.KeyValue }

// OpenMarks opens the marks of a name, and makes them if there are none.
func OpenMarks(ctx context.Context, conn *client.Conn, name string, replicas int) (*Marks, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	kv, err := openBucket(ctx, js, jetstream.KeyValueConfig{Bucket: name, History: 1, Replicas: replicas, Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("nats: marks %s: %w", name, err)
	}
	return &Marks{kv}, nil
}

// openBucket opens a bucket, and makes it or changes it to what is wanted.
func openBucket(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := js.CreateKeyValue(ctx, want)
	if errors.Is(err, jetstream.ErrBucketExists) {
		return js.UpdateKeyValue(ctx, want)
	}
	return kv, err
}

// Put replaces a value.
func (m *Marks) Put(ctx context.Context, name string, value []byte) error {
	if _, err := m.kv.Put(ctx, name, value); err != nil {
		return fmt.Errorf("nats: mark %s: %w", name, err)
	}
	return nil
}

// Get returns a value; nil: there is none.
func (m *Marks) Get(ctx context.Context, name string) ([]byte, error) {
	e, err := m.kv.Get(ctx, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("nats: mark %s: %w", name, err)
	}
	return e.Value(), nil
}
