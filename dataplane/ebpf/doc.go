// Package ebpf runs Weft's programs in the Linux kernel: the flowset of
// inswitch/flowset as an eBPF program at the ingress of interfaces (TCX, or XDP).
// It reads packets and changes none. Links belong to the process: when it ends,
// however it ends, the kernel detaches them.
//
// The programs are in C (flowset.c, parse.h); their objects are committed, so that
// building Weft needs no clang. `make bpf` rebuilds them.
//
// Guide: docs/agent.md. Layout of what is exported: docs/formats/flowset.md.
package ebpf

//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem flowset_object flowsetObject flowset.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem wire_object wireObject wire.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem peer_object peerObject peer.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem drops_object dropsObject drops.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
