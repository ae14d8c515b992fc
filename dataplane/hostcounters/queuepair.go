package hostcounters

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

// Commands and attributes of rdma/rdma_netlink.h.
const (
	nldevGet        = nl.RDMA_NL_NLDEV<<nl.RDMA_NL_GET_CLIENT_SHIFT + nl.RDMA_NLDEV_CMD_GET
	nldevQueuePairs = nl.RDMA_NL_NLDEV<<nl.RDMA_NL_GET_CLIENT_SHIFT + 10 // RDMA_NLDEV_CMD_RES_QP_GET

	attrQueuePairs   = 19 // RDMA_NLDEV_ATTR_RES_QP
	attrQueuePair    = 20
	attrLocalNumber  = 21
	attrRemoteNumber = 22
	attrType         = 26
	attrState        = 27
	attrPID          = 28
	attrKernelName   = 29
)

// maxQueuePairs bounds those of a host that are kept. Further ones are counted.
const maxQueuePairs = 1 << 16

// readQueuePairs reads the RDMA queue pairs of all devices, with the programs that own them.
// The kernel shows those of other users to root alone.
func readQueuePairs(root fs.FS, s *evidence.Snapshot) error {
	devices, err := dump(nldevGet, nil)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil // a kernel without RDMA
	}
	if err != nil {
		return fmt.Errorf("RDMA devices: %w", err)
	}
	for _, message := range devices {
		index, err := parseDevice(message)
		if err != nil {
			return fmt.Errorf("RDMA devices: %w", err)
		}
		messages, err := dump(nldevQueuePairs, nl.NewRtAttr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, nl.Uint32Attr(index)))
		if err != nil {
			return fmt.Errorf("queue pairs of RDMA device %d: %w", index, err)
		}
		for _, message := range messages {
			if err := parseQueuePairs(message, s); err != nil {
				return fmt.Errorf("queue pairs of RDMA device %d: %w", index, err)
			}
		}
	}
	nameProcesses(root, s.QueuePairs)
	return nil
}

// dump requests all objects of a kind.
func dump(command int, attribute *nl.RtAttr) ([][]byte, error) {
	request := nl.NewNetlinkRequest(command, unix.NLM_F_DUMP)
	if attribute != nil {
		request.AddData(attribute)
	}
	return request.Execute(unix.NETLINK_RDMA, 0)
}

// parseDevice returns the index of a device.
func parseDevice(message []byte) (index uint32, err error) {
	found := false
	err = eachAttribute(message, func(kind uint16, value []byte) error {
		if kind != nl.RDMA_NLDEV_ATTR_DEV_INDEX {
			return nil
		}
		found = true
		index, err = attributeU32(kind, value)
		return err
	})
	if err == nil && !found {
		err = errors.New("a device without index")
	}
	return index, err
}

// parseQueuePairs adds the queue pairs of a message, all of one device. Of those beyond
// maxQueuePairs it counts one in MoreQueuePairs each.
func parseQueuePairs(message []byte, s *evidence.Snapshot) error {
	device := ""
	first := len(s.QueuePairs)
	err := eachAttribute(message, func(kind uint16, value []byte) error {
		switch kind {
		case nl.RDMA_NLDEV_ATTR_DEV_NAME:
			device = attributeText(value)
		case attrQueuePairs:
			return eachAttribute(value, func(kind uint16, value []byte) error {
				if kind != attrQueuePair {
					return nil
				}
				if len(s.QueuePairs) == maxQueuePairs {
					s.MoreQueuePairs++
					return nil
				}
				q, err := parseQueuePair(value)
				if err != nil {
					return err
				}
				s.QueuePairs = append(s.QueuePairs, q)
				return nil
			})
		}
		return nil
	})
	for i := first; i < len(s.QueuePairs); i++ {
		s.QueuePairs[i].Device = device
	}
	return err
}

func parseQueuePair(entry []byte) (q evidence.QueuePair, err error) {
	err = eachAttribute(entry, func(kind uint16, value []byte) (err error) {
		var n uint32
		var b uint8
		switch kind {
		case nl.RDMA_NLDEV_ATTR_PORT_INDEX:
			n, err = attributeU32(kind, value)
			q.Port = int(n)
		case attrLocalNumber:
			q.Number, err = attributeU32(kind, value)
		case attrRemoteNumber:
			q.Remote, err = attributeU32(kind, value)
		case attrType:
			b, err = attributeU8(kind, value)
			q.Type = nameOf(queuePairTypes, b)
		case attrState:
			b, err = attributeU8(kind, value)
			q.State = nameOf(queuePairStates, b)
		case attrPID:
			n, err = attributeU32(kind, value)
			q.PID = int(n)
		case attrKernelName:
			q.Process = attributeText(value)
		}
		return err
	})
	return q, err
}

// Names of enum ib_qp_type and ib_qp_state, as rdma(8) prints them.
var (
	queuePairTypes = map[uint8]string{
		0: "SMI", 1: "GSI", 2: "RC", 3: "UC", 4: "UD", 5: "RAW_IPV6", 6: "RAW_ETHERTYPE", 8: "RAW_PACKET", 9: "XRC_INI", 10: "XRC_TGT", 255: "DRIVER",
	}
	queuePairStates = map[uint8]string{0: "RESET", 1: "INIT", 2: "RTR", 3: "RTS", 4: "SQD", 5: "SQE", 6: "ERR"}
)

func nameOf(names map[uint8]string, n uint8) string {
	if name, ok := names[n]; ok {
		return name
	}
	return strconv.Itoa(int(n))
}

// nameProcesses adds the names of programs that own queue pairs. Those of the kernel have the
// name of its module.
func nameProcesses(root fs.FS, list []evidence.QueuePair) {
	names := map[int]string{}
	for i := range list {
		q := &list[i]
		if q.PID == 0 {
			continue
		}
		name, known := names[q.PID]
		if !known {
			name = text(root, path.Join("proc", strconv.Itoa(q.PID), "comm"))
			names[q.PID] = name
		}
		q.Process = name
	}
}
