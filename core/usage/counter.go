package usage

// Counters are what a pooler has counted at an entry since it began, or between two looks at it.
type Counters struct{ Queries, WaitUs int64 }

// Since is what was counted since an earlier look. A counter that went back belongs to a pooler that began anew, from 0: what the
// one before counted after that look is lost.
func (c Counters) Since(before Counters) Counters {
	if c.Queries < before.Queries || c.WaitUs < before.WaitUs {
		return c
	}
	return Counters{c.Queries - before.Queries, c.WaitUs - before.WaitUs}
}
