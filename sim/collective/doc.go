// Package collective plans the transfers of collectives as NCCL runs them: rings
// and double binary trees over channels, chunks that follow each other, and who
// waits for what. A plan knows ranks and bytes; hosts, connections and times are
// sim/traffic's.
package collective
