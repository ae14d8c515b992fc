package cluster

import (
	"fmt"
	"hash/fnv"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/stream"
)

// Version is of the format of frames. Members of another version ignore them, and count.
const Version = 4

// maxChunk is how many bytes of a frame are in one message, and maxChunks how many
// messages a frame may have: 128 MiB.
const (
	maxChunk  = 256 << 10
	maxChunks = 512
)

// Header says which frame of which run of a decoder a message has a chunk of. Part is the
// partition of flows; Number counts slots, or batches of events.
type Header struct {
	Run, Number   uint64
	Part          uint32
	Chunk, Chunks uint32
}

// Code codes a header, with the version before it.
func (h *Header) Code(c *fieldcodec.Coder) {
	version := uint8(Version)
	if fieldcodec.Unsigned(c, &version); version != Version {
		c.Fail("frame of version %d, want %d", version, Version)
	}
	c.Uint64(&h.Run)
	c.Uint64(&h.Number)
	fieldcodec.Unsigned(c, &h.Part)
	fieldcodec.Unsigned(c, &h.Chunk)
	fieldcodec.Unsigned(c, &h.Chunks)
	if h.Chunks == 0 || h.Chunks > maxChunks || h.Chunk >= h.Chunks {
		c.Fail("chunk %d of %d, want fewer than %d", h.Chunk, h.Chunks, maxChunks)
	}
}

// id makes a chunk of a slot unique: the key of what follows from it.
func (h *Header) id(stage byte) uint64 {
	f := fnv.New64a()
	fmt.Fprint(f, stage, h.Run, h.Number, h.Part, h.Chunk)
	return max(f.Sum64(), 1)
}

// publish publishes a frame in as many messages as it needs. Those with an ID are accepted
// once from any publisher. The memory is for messages, which the stream copies.
func publish(s Stream, key uint64, h Header, unique byte, body []byte, memory *[]byte) error {
	h.Chunks = uint32(max(1, (len(body)+maxChunk-1)/maxChunk))
	if h.Chunks > maxChunks {
		return fmt.Errorf("cluster: frame of %d bytes: %w", len(body), stream.ErrTooLarge)
	}
	for h.Chunk = range h.Chunks {
		c := fieldcodec.NewWriter((*memory)[:0])
		h.Code(c)
		*memory = append(c.Written(), body[int(h.Chunk)*maxChunk:min(len(body), int(h.Chunk+1)*maxChunk)]...)
		m := stream.Message{Data: *memory}
		if unique != 0 {
			m.ID = h.id(unique)
		}
		if err := s.Publish(key, m); err != nil {
			return err
		}
	}
	return nil
}

// joiner joins the chunks of the frames of one partition.
type joiner struct {
	head Header
	body []byte // of a frame of several chunks; its memory is used again
}

// add takes a message, and returns the frame that it completes, whose body is valid until
// the next one or as long as the message. What does not follow the chunk before is malformed.
func (j *joiner) add(data []byte) (h Header, body []byte, done bool, err error) {
	c := fieldcodec.NewReader(data)
	h.Code(c)
	if err := c.Err(); err != nil {
		return h, nil, false, fmt.Errorf("cluster: %w", err)
	}
	rest := c.Rest()
	if h.Chunks == 1 {
		j.head = h
		return h, rest, true, nil
	}
	if h.Chunk == 0 {
		j.body = j.body[:0]
	} else if h.Run != j.head.Run || h.Number != j.head.Number || h.Chunks != j.head.Chunks || h.Chunk != j.head.Chunk+1 {
		return h, nil, false, fmt.Errorf("cluster: chunk %d of frame %d after chunk %d of frame %d", h.Chunk, h.Number, j.head.Chunk, j.head.Number)
	}
	j.head, j.body = h, append(j.body, rest...)
	if h.Chunk+1 < h.Chunks {
		return h, nil, false, nil
	}
	return h, j.body, true, nil
}
