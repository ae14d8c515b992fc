package evidence

import (
	"strings"
)

// Meaning is what a counter of a driver counts, whatever the vendor calls it.
type Meaning string

// Meanings.
const (
	PauseReceived   Meaning = "pause_received"       // frames of PFC or 802.3x: the fabric stops this NIC
	PauseSent       Meaning = "pause_sent"           // this NIC stops the fabric
	PausedTime      Meaning = "paused_us"            // time in which PFC stopped this NIC, µs
	PauseStorm      Meaning = "pause_storms"         // times in which this NIC stopped the fabric for too long
	SymbolErrors    Meaning = "symbol_errors"        // damaged by the cable or optics
	FECCorrected    Meaning = "fec_corrected"        // bits or blocks that error correction repaired: common at high rates
	FECLost         Meaning = "fec_lost"             // blocks that it could not repair
	LinkDown        Meaning = "link_down"            // times
	OutOfBuffer     Meaning = "out_of_buffer"        // received while no buffer was posted
	Discarded       Meaning = "discarded"            // received while the buffers of the NIC were full
	AllowanceExceed Meaning = "allowance_exceeded"   // beyond what the cloud's instance may do
	CNPReceived     Meaning = "cnp_received"         // notifications of congestion: this sender slows down
	CNPSent         Meaning = "cnp_sent"             // packets of others arrived marked
	ECNMarked       Meaning = "ecn_marked"           // RoCE packets that arrived marked
	OutOfSequence   Meaning = "out_of_sequence"      // received out of sequence: packets were lost, or overtaken
	SequenceNAK     Meaning = "sequence_nak"         // the peer missed packets of this sender
	AckTimeout      Meaning = "ack_timeout"          // the peer did not acknowledge in time
	NotReadySent    Meaning = "receiver_not_ready"   // RNR NAKs to peers: no receive buffer was posted here
	NotReadyGot     Meaning = "peer_not_ready"       // RNR NAKs from peers
	RetryExceeded   Meaning = "retry_exceeded"       // connections given up
	Retransmits     Meaning = "rdma_retransmissions" // packets or segments sent again
)

// nicNames are names of ethtool -S. # is a number. Counters of one meaning are added up, so that
// of two that count the same packets one is here: of mlx5 rx_discards_phy, which is the sum of
// rx_prio#_buf_discard, and of bnxt rx_pfc_frames, that of rx_pfc_ena_frames_pri#.
var nicNames = map[string]Meaning{
	// mlx5
	"rx_prio#_pause": PauseReceived, "tx_prio#_pause": PauseSent, "rx_prio#_pause_duration": PausedTime, "rx_global_pause_duration": PausedTime,
	"rx_pause_ctrl_phy": PauseReceived, "tx_pause_ctrl_phy": PauseSent, "tx_pause_storm_warning_events": PauseStorm, "tx_pause_storm_error_events": PauseStorm,
	"rx_symbol_err_phy": SymbolErrors, "rx_pcs_symbol_err_phy": SymbolErrors, "rx_corrected_bits_phy": FECCorrected,
	"link_down_events_phy": LinkDown, "rx_out_of_buffer": OutOfBuffer, "rx_discards_phy": Discarded,
	// bnxt
	"rx_pause_frames": PauseReceived, "rx_pfc_frames": PauseReceived, "tx_pause_frames": PauseSent, "tx_pfc_frames": PauseSent,
	"pfc_pri#_rx_duration_us": PausedTime, "rx_pcs_symbol_err": SymbolErrors, "rx_fec_corrected_blocks": FECCorrected, "rx_fec_uncorrectable_blocks": FECLost,
	"link_down_events": LinkDown, "rx_total_discard_pkts": Discarded,
	// ice, i40e
	"rx_priority_#_xoff.nic": PauseReceived, "tx_priority_#_xoff.nic": PauseSent, "link_xoff_rx.nic": PauseReceived, "link_xoff_tx.nic": PauseSent,
	"rx_dropped.nic": Discarded, "illegal_bytes.nic": SymbolErrors,
	"port.rx_priority_#_xoff": PauseReceived, "port.tx_priority_#_xoff": PauseSent, "port.link_xoff_rx": PauseReceived, "port.link_xoff_tx": PauseSent,
	"port.rx_discards": Discarded, "port.rx_dropped": Discarded, "port.illegal_bytes": SymbolErrors, // rx_dropped before Linux 6.7
	// ionic
	"frames_rx_pause": PauseReceived, "frames_rx_pripause": PauseReceived, "frames_tx_pause": PauseSent, "frames_tx_pripause": PauseSent,
	"rx_pause_1us_count": PausedTime, "rx_pripause_#_#us_count": PausedTime, "frames_rx_dropped": Discarded,
	// ena
	"bw_in_allowance_exceeded": AllowanceExceed, "bw_out_allowance_exceeded": AllowanceExceed, "pps_allowance_exceeded": AllowanceExceed,
	"conntrack_allowance_exceeded": AllowanceExceed, "linklocal_allowance_exceeded": AllowanceExceed,
}

// rdmaNames are names of hw_counters.
var rdmaNames = map[string]Meaning{
	// mlx5
	"out_of_sequence": OutOfSequence, "packet_seq_err": SequenceNAK, "implied_nak_seq_err": SequenceNAK, "local_ack_timeout_err": AckTimeout,
	"rnr_nak_retry_err": NotReadyGot, "np_cnp_sent": CNPSent, "rp_cnp_handled": CNPReceived, "np_ecn_marked_roce_packets": ECNMarked,
	"out_of_buffer": NotReadySent, "req_transport_retries_exceeded": RetryExceeded, "req_rnr_retries_exceeded": RetryExceeded, "roce_adp_retrans": Retransmits,
	// rxe
	"out_of_seq_request": OutOfSequence, "rcvd_seq_err": SequenceNAK, "rcvd_rnr_err": NotReadyGot, "send_rnr_err": NotReadySent,
	"retry_exceeded_err": RetryExceeded, "retry_rnr_exceeded_err": RetryExceeded, "completer_retry_err": Retransmits,
	// bnxt_re
	"seq_err_naks_rcvd": SequenceNAK, "rnr_naks_rcvd": NotReadyGot, "to_retransmits": Retransmits, "max_retry_exceeded": RetryExceeded,
	"oos_drop_count": OutOfSequence, "rx_out_of_buffer": NotReadySent, "rx_roce_discards": Discarded,
	"rx_cnp_pkts": CNPReceived, "tx_cnp_pkts": CNPSent, "rx_ecn_marked_pkts": ECNMarked,
	// irdma, the last line of its third generation
	"cnpHandled": CNPReceived, "cnpSent": CNPSent, "RxECNMrkd": ECNMarked, "RetransSegs": Retransmits, "tcpRetransSegs": Retransmits,
	"Nak Sequence Error": SequenceNAK, "Nak Sequence Error Implied": SequenceNAK, "Rcvd Out of order packets": OutOfSequence,
	"RTO": AckTimeout, "RNR sent": NotReadySent, "RNR received": NotReadyGot,
	// ionic
	"rx_rdma_cnp_pkts": CNPReceived, "tx_rdma_cnp_pkts": CNPSent, "rx_rdma_ecn_pkts": ECNMarked, "tx_rdma_ack_timeout": AckTimeout,
	"req_rx_pkt_seq_err": SequenceNAK, "req_rx_impl_nak_seq_err": SequenceNAK, "resp_tx_pkt_seq_err": OutOfSequence,
	"req_rx_rnr_retry_err": NotReadyGot, "resp_tx_rnr_retry_err": NotReadySent, "req_tx_retry_excd_err": RetryExceeded,
	// efa
	"retrans_pkts": Retransmits, "retrans_timeout_events": AckTimeout, "rx_drops": Discarded,
}

// NICMeaning returns what a counter of ethtool -S means.
func NICMeaning(name string) (Meaning, bool) { return meaningIn(nicNames, name) }

// RDMAMeaning returns what a counter of an RDMA port means.
func RDMAMeaning(name string) (Meaning, bool) { return meaningIn(rdmaNames, name) }

func meaningIn(names map[string]Meaning, name string) (Meaning, bool) {
	if m, ok := names[name]; ok {
		return m, true
	}
	m, ok := names[withoutNumbers(name)]
	return m, ok
}

// withoutNumbers replaces every number of a name by #.
func withoutNumbers(name string) string {
	var b strings.Builder
	number := false
	for _, r := range name {
		if r >= '0' && r <= '9' {
			if !number {
				b.WriteByte('#')
			}
			number = true
			continue
		}
		number = false
		b.WriteRune(r)
	}
	return b.String()
}
