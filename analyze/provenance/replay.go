package provenance

// share is what one flow did at a port in one epoch, paused packets left out.
type share struct {
	packets int
	depth   int // packets before each of its packets, in the mean
}

// replayer works out who held whom up in a queue, from counts alone. As in the
// paper, each flow's packets are spread evenly over the epoch and merged; a
// packet then waits for as many of those before it as its flow's mean depth
// says. Its memory is used again.
type replayer struct {
	times []arrival
	first []int32   // by bucket of time: where its arrivals begin
	gain  []float64 // by position, differences
	unit  []float64 // by flow: one of its packets, in the mean over them
	slot  []int32   // by flow and packet: its bucket
}

type arrival struct {
	at   float64 // of the epoch
	flow int32
}

// contribute returns each flow's contribution to the contention: how many of
// its packets others waited for, less how many of others its own waited for,
// each in the mean over the packets that wait.
//
// A packet at position p waits for positions p-d to p-1. Seen from position q,
// that is a range of waiting packets: adding their weights as differences and
// summing up once makes it linear in packets, where looking at every pair is
// packets times depth.
func (r *replayer) contribute(flows []share, out []float64) []float64 {
	r.merge(flows)
	r.gain = append(r.gain[:0], make([]float64, len(r.times)+1)...)
	out = append(out[:0], make([]float64, len(flows))...)
	r.unit = r.unit[:0]
	for _, s := range flows {
		r.unit = append(r.unit, 1/float64(s.packets))
	}
	for p, a := range r.times {
		d, w := min(flows[a.flow].depth, p), r.unit[a.flow]
		r.gain[p-d] += w
		r.gain[p] -= w
		out[a.flow] -= float64(d) * w
	}
	sum := 0.0
	for q, a := range r.times {
		sum += r.gain[q]
		out[a.flow] += sum
	}
	return out
}

// merge puts all packets in the order of their times, those of one time by
// flow. As many buckets as packets hold about one each, so that sorting within
// them is all there is to do; a general sort took five times as long.
func (r *replayer) merge(flows []share) {
	total := 0
	for _, s := range flows {
		total += s.packets
	}
	r.first = append(r.first[:0], make([]int32, total+1)...)
	r.times = append(r.times[:0], make([]arrival, total)...)
	r.slot = r.slot[:0]
	for _, s := range flows {
		for j := range s.packets {
			i := int32(min(int(float64(j)/float64(s.packets)*float64(total)), total-1))
			r.first[i+1]++
			r.slot = append(r.slot, i)
		}
	}
	for i := 1; i <= total; i++ {
		r.first[i] += r.first[i-1]
	}
	// Filling bucket i moves first[i] to its end; what comes after in a bucket
	// is sorted in from behind.
	slots := r.slot
	for f, s := range flows {
		for j := range s.packets {
			a := arrival{float64(j) / float64(s.packets), int32(f)}
			i := slots[j]
			at := r.first[i]
			r.first[i]++
			// Flows come in order, so among equal times the new one is last.
			// Places of the bucket before hold earlier times, or 0 so far.
			for at > 0 && r.times[at-1].at > a.at {
				r.times[at] = r.times[at-1]
				at--
			}
			r.times[at] = a
		}
		slots = slots[s.packets:]
	}
}
