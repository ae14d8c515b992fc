package grpcsource

import "errors"

// Message is a message as it came. Its data is valid until the next one is received into it.
type Message struct{ Data []byte }

// rawCodec leaves messages as they are.
type rawCodec struct{}

var errMessage = errors.New("grpcsource: not a Message")

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(*Message)
	if !ok {
		return nil, errMessage
	}
	return m.Data, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(*Message)
	if !ok {
		return errMessage
	}
	m.Data = append(m.Data[:0], data...)
	return nil
}
