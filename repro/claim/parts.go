package claim

// Parts keeps what the parts of a long measurement have found, so that it continues
// where it was interrupted. Goroutines may share it.
type Parts interface {
	// Part sets found to what was kept under a key, and reports whether there was any.
	Part(key string, found any) (known bool, err error)
	// KeepPart keeps what was found, which must survive JSON.
	KeepPart(key string, found any) error
}

// Once returns what a part of the measurement found before an interruption, or else
// what measure finds now. A key names one part of the claim: what it stands for must
// depend on the options alone.
func Once[T any](o Options, key string, measure func() (T, error)) (found T, err error) {
	if o.Parts == nil {
		return measure()
	}
	if known, err := o.Parts.Part(key, &found); known || err != nil {
		return found, err
	}
	if found, err = measure(); err == nil {
		err = o.Parts.KeepPart(key, found)
	}
	return found, err
}
