// Package ebpf runs Weft's programs in the Linux kernel: inswitch/flowset and
// inswitch/mirror as eBPF programs at the ingress of interfaces (TCX, clsact or XDP).
// They read packets and change none. Links belong to the process: when it ends,
// however it ends, the kernel detaches them. Filters of clsact stay.
//
// The programs are in C (flowset.c, mirror.c, parse.h); their objects are committed, so that
// building Weft needs no clang. `make bpf` rebuilds them.
//
// Guide: docs/agent.md. Layout of what is exported: docs/formats/flowset.md.
package ebpf

//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem flowset_object flowsetObject flowset.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem wire_object wireObject wire.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem peer_object peerObject peer.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -target bpfel -go-package ebpf -output-stem drops_object dropsObject drops.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
//go:generate go tool -modfile=../../tools.mod bpf2go -tags linux -type record -target bpfel -go-package ebpf -output-stem mirror_object mirrorObject mirror.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu
